//! Where pods stand to each other: affinity, anti-affinity and spread over zones, hosts or whatever nodes are labelled
//! with. Counts once for each rule, not once for each pod. Knows no resources.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use k8s_openapi::api::core::v1::{PodAffinityTerm, TopologySpreadConstraint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::json;
use strata_model::selector::Selector;

use super::{Place, affinity};
use crate::pods::PodRef;
use crate::pods::body::PodSpec;

/// Labels of all namespaces, by name.
pub type Namespaces = HashMap<String, BTreeMap<String, String>>;

/// Which pods a rule counts, and over which label of nodes.
#[derive(Debug)]
struct Tally {
    key: String,
    selector: Selector,
    /// `None`: all.
    namespaces: Option<BTreeSet<String>>,
    /// Pods on their way out do not count.
    staying: bool,
    /// By value of the label.
    counts: HashMap<String, i64>,
}

impl Tally {
    fn counts(&self, pod: &PodRef) -> bool {
        let meta = pod.object().meta();
        self.namespaces.as_ref().is_none_or(|all| all.contains(&meta.namespace))
            && !(self.staying && meta.is_deleting())
            && self.selector.matches(&meta.labels)
    }

    fn at(&self, place: &Place) -> Option<i64> {
        place.label(&self.key).map(|value| self.counts.get(value).copied().unwrap_or(0))
    }

    fn add(&mut self, place: &Place, n: i64) {
        if let Some(value) = place.label(&self.key) {
            *self.counts.entry(value.to_owned()).or_default() += n;
        }
    }
}

/// All that is counted in one turn.
#[derive(Debug)]
pub struct Topology<'a> {
    namespaces: &'a Namespaces,
    tallies: Vec<Tally>,
    known: HashMap<String, usize>,
    /// What pods that have a node do not want beside them; counted are those who do not want it.
    against: Vec<Tally>,
    known_against: HashMap<String, usize>,
}

/// What one pod asks of its neighbours, and they of it. Indexes of tallies.
#[derive(Debug, Default)]
pub struct Demand {
    /// Beside one of these; with whether the pod is such a one itself.
    beside: Vec<(usize, bool)>,
    /// Beside none of these.
    apart: Vec<usize>,
    /// Beside none who does not want it.
    unwanted: Vec<usize>,
    spread: Vec<Spread>,
    /// Gladly beside these, or gladly not, by weight.
    wishes: Vec<(usize, i64)>,
}

#[derive(Debug)]
struct Spread {
    tally: usize,
    max_skew: i64,
    /// One, where the pod counts itself.
    own: i64,
    /// The fewest in any domain.
    least: i64,
    hard: bool,
}

impl Demand {
    /// Whether any node will do.
    pub fn is_free(&self) -> bool {
        self.beside.is_empty()
            && self.apart.is_empty()
            && self.unwanted.is_empty()
            && self.spread.is_empty()
            && self.wishes.is_empty()
    }

    /// Whether another pod's arrival could make room for this one.
    pub fn looks_for_company(&self) -> bool {
        !self.beside.is_empty() || self.spread.iter().any(|s| s.hard)
    }
}

impl<'a> Topology<'a> {
    /// What the pods on these places are against. All else is counted when somebody asks.
    pub fn new(places: &[Place], namespaces: &'a Namespaces) -> Self {
        let mut topology = Self {
            namespaces,
            tallies: Vec::new(),
            known: HashMap::new(),
            against: Vec::new(),
            known_against: HashMap::new(),
        };
        for place in places {
            for pod in place.residents() {
                topology.note_against(pod, place);
            }
        }
        topology
    }

    /// Counts a pod that was given a place.
    pub fn placed(&mut self, pod: &PodRef, place: &Place) {
        for tally in &mut self.tallies {
            if tally.counts(pod) {
                tally.add(place, 1);
            }
        }
        self.note_against(pod, place);
    }

    fn note_against(&mut self, pod: &PodRef, place: &Place) {
        let anti = pod.spec.as_ref().and_then(|s| s.affinity.as_ref()?.pod_anti_affinity.as_ref());
        let required = anti.and_then(|a| a.required_during_scheduling_ignored_during_execution.as_ref());
        for term in required.into_iter().flatten() {
            let Some((id, tally)) = self.term(term, pod) else { continue };
            let at = *self.known_against.entry(id).or_insert_with(|| {
                self.against.push(tally);
                self.against.len() - 1
            });
            self.against[at].add(place, 1);
        }
    }

    /// What a pod and its neighbours ask of each other.
    pub fn demand(&mut self, places: &[Place], pod: &PodRef) -> Demand {
        let mut demand = Demand::default();
        demand.unwanted.extend((0..self.against.len()).filter(|at| self.against[*at].counts(pod)));
        let Some(spec) = pod.spec.as_ref() else { return demand };
        let affinity = spec.affinity.as_ref();
        let (with, without) = (
            affinity.and_then(|a| a.pod_affinity.as_ref()),
            affinity.and_then(|a| a.pod_anti_affinity.as_ref()),
        );
        for term in with
            .and_then(|a| a.required_during_scheduling_ignored_during_execution.as_ref())
            .into_iter()
            .flatten()
        {
            if let Some(at) = self.tally_of(places, term, pod) {
                demand.beside.push((at, self.tallies[at].counts(pod)));
            }
        }
        for term in without
            .and_then(|a| a.required_during_scheduling_ignored_during_execution.as_ref())
            .into_iter()
            .flatten()
        {
            demand.apart.extend(self.tally_of(places, term, pod));
        }
        for (wishes, sign) in [
            (with.and_then(|a| a.preferred_during_scheduling_ignored_during_execution.as_ref()), 1),
            (without.and_then(|a| a.preferred_during_scheduling_ignored_during_execution.as_ref()), -1),
        ] {
            for wish in wishes.into_iter().flatten() {
                let at = self.tally_of(places, &wish.pod_affinity_term, pod);
                demand.wishes.extend(at.map(|at| (at, sign * i64::from(wish.weight))));
            }
        }
        for constraint in spec.topology_spread_constraints.iter().flatten() {
            demand.spread.extend(self.spread(places, constraint, spec, pod));
        }
        demand
    }

    fn tally_of(&mut self, places: &[Place], term: &PodAffinityTerm, pod: &PodRef) -> Option<usize> {
        let (id, tally) = self.term(term, pod)?;
        Some(self.counted(places, id, tally))
    }

    fn counted(&mut self, places: &[Place], id: String, mut tally: Tally) -> usize {
        if let Some(at) = self.known.get(&id) {
            return *at;
        }
        for place in places {
            let here = place.residents().iter().filter(|pod| tally.counts(pod)).count();
            if here > 0 {
                tally.add(place, i64::try_from(here).unwrap_or(i64::MAX));
            }
        }
        self.tallies.push(tally);
        self.known.insert(id, self.tallies.len() - 1);
        self.tallies.len() - 1
    }

    /// The tally of a term of a pod, with what tells it from others.
    fn term(&self, term: &PodAffinityTerm, pod: &PodRef) -> Option<(String, Tally)> {
        let own = &pod.object().meta().namespace;
        let mut named: BTreeSet<String> = term.namespaces.iter().flatten().cloned().collect();
        let namespaces = match &term.namespace_selector {
            None if named.is_empty() => Some(BTreeSet::from([own.clone()])),
            None => Some(named),
            Some(body) => {
                let selector = Selector::from_body(body).ok()?;
                let selected = self.namespaces.iter().filter(|(_, labels)| selector.matches(labels));
                named.extend(selected.map(|(name, _)| name.clone()));
                (!selector.is_everything()).then_some(named)
            }
        };
        let keys = [(term.match_label_keys.as_ref(), true), (term.mismatch_label_keys.as_ref(), false)];
        let body = with_keys(term.label_selector.as_ref()?, keys, pod);
        tally(&term.topology_key, &body, namespaces, false)
    }

    fn spread(
        &mut self,
        places: &[Place],
        constraint: &TopologySpreadConstraint,
        spec: &PodSpec,
        pod: &PodRef,
    ) -> Option<Spread> {
        let namespaces = Some(BTreeSet::from([pod.object().meta().namespace.clone()]));
        let none = LabelSelector::default();
        let body = constraint.label_selector.as_ref().unwrap_or(&none);
        let body = with_keys(body, [(constraint.match_label_keys.as_ref(), true)], pod);
        let (id, tally) = tally(&constraint.topology_key, &body, namespaces, true)?;
        let at = self.counted(places, id, tally);
        let tally = &self.tallies[at];
        let hard = constraint.when_unsatisfiable == "DoNotSchedule";
        let (mut domains, mut least) = (BTreeSet::new(), i64::MAX);
        if hard {
            for place in places.iter().filter(|p| affinity::matches(spec, p.node())) {
                if let Some(value) = place.label(&tally.key) {
                    domains.insert(value);
                    least = least.min(tally.counts.get(value).copied().unwrap_or(0));
                }
            }
        }
        let few = constraint.min_domains.is_some_and(|min| domains.len() < usize::try_from(min).unwrap_or(0));
        let least = if few || least == i64::MAX { 0 } else { least };
        let own = i64::from(tally.counts(pod));
        Some(Spread { tally: at, max_skew: constraint.max_skew.into(), own, least, hard })
    }

    /// Why a pod cannot come to a place; the usual words.
    pub fn refusal(&self, demand: &Demand, place: &Place) -> Option<&'static str> {
        let lonely = |at: usize| self.tallies[at].counts.values().all(|n| *n == 0);
        let beside = |(at, own): &(usize, bool)| match self.tallies[*at].at(place) {
            Some(n) => n > 0 || (*own && lonely(*at)),
            None => false,
        };
        if !demand.beside.iter().all(beside) {
            return Some("node(s) didn't match pod affinity rules");
        }
        if demand.apart.iter().any(|at| self.tallies[*at].at(place).is_some_and(|n| n > 0)) {
            return Some("node(s) didn't match pod anti-affinity rules");
        }
        if demand.unwanted.iter().any(|at| self.against[*at].at(place).is_some_and(|n| n > 0)) {
            return Some("node(s) didn't satisfy existing pods anti-affinity rules");
        }
        for spread in demand.spread.iter().filter(|s| s.hard) {
            let Some(here) = self.tallies[spread.tally].at(place) else {
                return Some("node(s) didn't match pod topology spread constraints (missing required label)");
            };
            if here + spread.own - spread.least > spread.max_skew {
                return Some("node(s) didn't match pod topology spread constraints");
            }
        }
        None
    }

    /// How gladly a pod would be at a place: the more, the better.
    pub fn wish(&self, demand: &Demand, place: &Place) -> i64 {
        let wishes =
            demand.wishes.iter().map(|(at, weight)| weight * self.tallies[*at].at(place).unwrap_or(0));
        let spread = demand.spread.iter().map(|s| -100 * self.tallies[s.tally].at(place).unwrap_or(0));
        wishes.chain(spread).sum()
    }
}

/// A selector with the pod's own values of some labels.
fn with_keys<const N: usize>(
    body: &LabelSelector,
    keys: [(Option<&Vec<String>>, bool); N],
    pod: &PodRef,
) -> LabelSelector {
    let mut body = body.clone();
    for (keys, same) in keys {
        for key in keys.into_iter().flatten() {
            let Some(value) = pod.object().meta().label(key) else { continue };
            let requirement =
                json!({"key": key, "operator": if same { "In" } else { "NotIn" }, "values": [value]});
            if let Ok(requirement) = serde_json::from_value(requirement) {
                body.match_expressions.get_or_insert_default().push(requirement);
            }
        }
    }
    body
}

/// A rule that cannot be read counts nothing; the API server admits none.
fn tally(
    key: &str,
    body: &LabelSelector,
    namespaces: Option<BTreeSet<String>>,
    staying: bool,
) -> Option<(String, Tally)> {
    let selector = Selector::from_body(body).ok()?;
    let id = json!([key, body, namespaces, staying]).to_string();
    Some((id, Tally { key: key.to_owned(), selector, namespaces, staying, counts: HashMap::new() }))
}
