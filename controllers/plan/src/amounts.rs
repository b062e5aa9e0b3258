//! Amounts of resources: what a node has, what a pod asks for. Exact integers in thousandths of each resource's unit.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use serde::Deserialize;
use strata_model::quantity::Quantity;

/// Resource names that every node has.
pub const CPU: &str = "cpu";
/// Bytes of memory.
pub const MEMORY: &str = "memory";
/// How many pods fit.
pub const PODS: &str = "pods";

/// The resources that every pod and node has, in the order of their places.
const USUAL: [&str; 3] = [CPU, MEMORY, PODS];

/// By resource name, in thousandths. An absent one is zero. Every placement compares the usual ones with every node, so
/// they have fixed places.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "BTreeMap<String, Text>")]
pub struct Amounts {
    usual: [Option<i128>; 3],
    others: BTreeMap<String, i128>,
}

fn place(name: &str) -> Option<usize> {
    USUAL.iter().position(|usual| *usual == name)
}

impl Amounts {
    /// What a body says. Amounts that do not parse count as nothing; the API server admits none.
    pub fn of(body: Option<&BTreeMap<String, Text>>) -> Self {
        let mut amounts = Self::default();
        for (name, text) in body.into_iter().flatten() {
            amounts.set(name, text.0.parse::<Quantity>().map_or(0, |q| q.milli()));
        }
        amounts
    }

    fn set(&mut self, name: &str, milli: i128) {
        match place(name) {
            Some(at) => self.usual[at] = Some(milli),
            None => drop(self.others.insert(name.to_owned(), milli)),
        }
    }

    /// One amount.
    pub fn get(&self, name: &str) -> i128 {
        match place(name) {
            Some(at) => self.usual[at].unwrap_or(0),
            None => self.others.get(name).copied().unwrap_or(0),
        }
    }

    /// Whether the resource is named at all.
    pub fn names(&self, name: &str) -> bool {
        place(name).map_or_else(|| self.others.contains_key(name), |at| self.usual[at].is_some())
    }

    /// All amounts with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i128)> {
        let usual = USUAL.iter().zip(&self.usual).filter_map(|(name, n)| Some((*name, (*n)?)));
        usual.chain(self.others.iter().map(|(name, n)| (name.as_str(), *n)))
    }

    /// The names of what these ask for and `free` has less of, where `free` is what is left of `all` beside `used`.
    pub fn beyond<'a>(&'a self, all: &'a Self, used: &'a Self) -> impl Iterator<Item = &'a str> {
        let short = |at: usize| {
            let asked = self.usual[at].unwrap_or(0);
            asked > 0 && asked > all.usual[at].unwrap_or(0) - used.usual[at].unwrap_or(0)
        };
        let usual = (0..USUAL.len()).filter(move |at| short(*at)).map(|at| USUAL[at]);
        let others = self.others.iter().filter(|(name, n)| **n > 0 && **n > all.get(name) - used.get(name));
        usual.chain(others.map(|(name, _)| name.as_str()))
    }

    /// Adds other amounts.
    pub fn add(&mut self, other: &Self) {
        for (name, n) in other.iter() {
            self.set(name, self.get(name).saturating_add(n));
        }
    }

    /// Adds other amounts, where there are any.
    pub fn add_all(&mut self, other: Option<&Self>) {
        if let Some(other) = other {
            self.add(other);
        }
    }

    /// Raises each amount to at least the other's.
    pub fn raise(&mut self, other: &Self) {
        for (name, n) in other.iter() {
            if n > self.get(name) || !self.names(name) {
                self.set(name, n);
            }
        }
    }

    /// Replaces the amounts that the other names.
    pub fn overlay(&mut self, other: &Self) {
        for (name, n) in other.iter() {
            self.set(name, n);
        }
    }

    /// Adds thousandths of one resource.
    pub fn add_one(&mut self, name: &str, milli: i128) {
        self.set(name, self.get(name).saturating_add(milli));
    }
}

impl From<BTreeMap<String, Text>> for Amounts {
    fn from(body: BTreeMap<String, Text>) -> Self {
        Self::of(Some(&body))
    }
}
