//! Label and field selectors: one algebra for query strings, `matchLabels` and `matchExpressions`.
//! Grammar and texts follow the Kubernetes label-selector documentation. Knows nothing of objects but their labels.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::names;

/// Most requirements one selector may hold.
pub const MAX_REQUIREMENTS: usize = 512;
/// Longest selector text, in bytes.
pub const MAX_TEXT: usize = 64 * 1024;

/// A selector that cannot be read. The text names the place and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(String);

/// How a label is compared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// The value is one of these.
    In(Vec<String>),
    /// Absent, or the value is none of these.
    NotIn(Vec<String>),
    /// Present.
    Exists,
    /// Absent.
    DoesNotExist,
    /// An integer above this.
    GreaterThan(i64),
    /// An integer below this.
    LessThan(i64),
}

/// One requirement on one label.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Requirement {
    /// Label key.
    pub key: String,
    /// Comparison.
    pub operator: Operator,
}

impl Requirement {
    fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        let number = || value.and_then(|v| v.parse::<i64>().ok());
        match &self.operator {
            Operator::In(values) => value.is_some_and(|v| values.contains(v)),
            Operator::NotIn(values) => value.is_none_or(|v| !values.contains(v)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan(bound) => number().is_some_and(|n| n > *bound),
            Operator::LessThan(bound) => number().is_some_and(|n| n < *bound),
        }
    }
}

/// A label selector: all requirements must hold; none means everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Selector {
    requirements: Vec<Requirement>,
}

impl Selector {
    /// Matches everything.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Matches objects that carry all these labels.
    pub fn from_labels(labels: &BTreeMap<String, String>) -> Self {
        let requirements = labels
            .iter()
            .map(|(k, v)| Requirement { key: k.clone(), operator: Operator::In(vec![v.clone()]) })
            .collect();
        Self { requirements }
    }

    /// The selector of an object's body. An empty one matches everything (what an absent one means is the type's affair).
    pub fn from_body(body: &LabelSelector) -> Result<Self, SelectorError> {
        let mut selector = Self::from_labels(body.match_labels.as_ref().unwrap_or(&BTreeMap::new()));
        for expression in body.match_expressions.iter().flatten() {
            let values = expression.values.clone().unwrap_or_default();
            let operator = match (expression.operator.as_str(), values.is_empty()) {
                ("In", false) => Operator::In(values),
                ("NotIn", false) => Operator::NotIn(values),
                ("Exists", true) => Operator::Exists,
                ("DoesNotExist", true) => Operator::DoesNotExist,
                ("In" | "NotIn", true) => {
                    return Err(SelectorError(format!(
                        "{}: values must be specified when `operator` is 'In' or 'NotIn'",
                        expression.key
                    )));
                }
                ("Exists" | "DoesNotExist", false) => {
                    return Err(SelectorError(format!(
                        "{}: values may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                        expression.key
                    )));
                }
                (other, _) => {
                    return Err(SelectorError(format!("{other:?} is not a valid label selector operator")));
                }
            };
            selector.requirements.push(Requirement { key: expression.key.clone(), operator });
        }
        Ok(selector)
    }

    /// Parses the query form: `a=b,c!=d,e in (f,g),!h,i>5`.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        if text.len() > MAX_TEXT {
            return Err(SelectorError(format!("selector is longer than {MAX_TEXT} bytes")));
        }
        let mut parser = Parser { tokens: tokens(text), at: 0 };
        let mut requirements = Vec::new();
        while parser.peek() != &Token::End {
            requirements.push(parser.requirement()?);
            if requirements.len() > MAX_REQUIREMENTS {
                return Err(SelectorError(format!("selector has more than {MAX_REQUIREMENTS} requirements")));
            }
            match parser.next() {
                Token::Comma if parser.peek() == &Token::End => {
                    return Err(SelectorError("found '', expected: identifier after ','".to_owned()));
                }
                Token::Comma | Token::End => {}
                other => {
                    return Err(SelectorError(format!("found '{other}', expected: ',' or 'end of string'")));
                }
            }
        }
        Ok(Self { requirements })
    }

    /// Whether all requirements hold.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.requirements.iter().all(|r| r.matches(labels))
    }

    /// Whether it matches everything.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// The requirements, all of which must hold.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, r) in self.requirements.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            match &r.operator {
                Operator::In(v) if v.len() == 1 => write!(f, "{}={}", r.key, v[0])?,
                Operator::In(v) => write!(f, "{} in ({})", r.key, v.join(","))?,
                Operator::NotIn(v) if v.len() == 1 => write!(f, "{}!={}", r.key, v[0])?,
                Operator::NotIn(v) => write!(f, "{} notin ({})", r.key, v.join(","))?,
                Operator::Exists => f.write_str(&r.key)?,
                Operator::DoesNotExist => write!(f, "!{}", r.key)?,
                Operator::GreaterThan(n) => write!(f, "{}>{n}", r.key)?,
                Operator::LessThan(n) => write!(f, "{}<{n}", r.key)?,
            }
        }
        Ok(())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Not,
    Equal,
    NotEqual,
    Greater,
    Less,
    Open,
    Close,
    Comma,
    End,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Word(w) => w,
            Self::Not => "!",
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Greater => ">",
            Self::Less => "<",
            Self::Open => "(",
            Self::Close => ")",
            Self::Comma => ",",
            Self::End => "",
        })
    }
}

fn tokens(text: &str) -> Vec<Token> {
    let mut out = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        out.push(match c {
            ' ' | '\t' | '\n' | '\r' => continue,
            '!' if chars.next_if_eq(&'=').is_some() => Token::NotEqual,
            '!' => Token::Not,
            '=' => {
                chars.next_if_eq(&'=');
                Token::Equal
            }
            '>' => Token::Greater,
            '<' => Token::Less,
            '(' => Token::Open,
            ')' => Token::Close,
            ',' => Token::Comma,
            first => {
                let mut word = String::from(first);
                while let Some(c) = chars.next_if(|c| !" \t\n\r!=><(),".contains(*c)) {
                    word.push(c);
                }
                Token::Word(word)
            }
        });
    }
    out.push(Token::End);
    out
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> &Token {
        self.tokens.get(self.at).unwrap_or(&Token::End)
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        let absent = self.peek() == &Token::Not;
        if absent {
            self.next();
        }
        let key = match self.next() {
            Token::Word(key) => key,
            other => return Err(SelectorError(format!("found '{other}', expected: identifier"))),
        };
        if let Some(fault) = names::qualified_name(&key) {
            return Err(SelectorError(format!("key: Invalid value: \"{key}\": {fault}")));
        }
        let operator = match (absent, self.peek().clone()) {
            (true, Token::Comma | Token::End) => Operator::DoesNotExist,
            (true, other) => {
                return Err(SelectorError(format!("found '{other}', expected: ',' or 'end of string'")));
            }
            (false, Token::Comma | Token::End) => Operator::Exists,
            (false, token) => {
                self.next();
                self.comparison(token)?
            }
        };
        Ok(Requirement { key, operator })
    }

    fn comparison(&mut self, token: Token) -> Result<Operator, SelectorError> {
        match token {
            Token::Equal => Ok(Operator::In(vec![self.value()?])),
            Token::NotEqual => Ok(Operator::NotIn(vec![self.value()?])),
            Token::Greater => Ok(Operator::GreaterThan(self.number()?)),
            Token::Less => Ok(Operator::LessThan(self.number()?)),
            Token::Word(word) if word == "in" => Ok(Operator::In(self.values()?)),
            Token::Word(word) if word == "notin" => Ok(Operator::NotIn(self.values()?)),
            other => Err(SelectorError(format!(
                "unable to parse requirement: found '{other}', expected: in, notin, =, ==, !=, gt, lt"
            ))),
        }
    }

    fn value(&mut self) -> Result<String, SelectorError> {
        let value = match self.peek() {
            Token::Word(_) => self.next().to_string(),
            Token::Comma | Token::End => String::new(),
            other => return Err(SelectorError(format!("found '{other}', expected: identifier"))),
        };
        check_value(value)
    }

    fn number(&mut self) -> Result<i64, SelectorError> {
        let value = self.value()?;
        value.parse().map_err(|_| {
            SelectorError(format!(
                "values: Invalid value: \"{value}\": for 'Gt', 'Lt' operators, the value must be an integer"
            ))
        })
    }

    fn values(&mut self) -> Result<Vec<String>, SelectorError> {
        match self.next() {
            Token::Open => {}
            other => return Err(SelectorError(format!("found '{other}' expected: '('"))),
        }
        let mut values = Vec::new();
        loop {
            match self.next() {
                Token::Word(word) => {
                    values.push(check_value(word)?);
                    match self.next() {
                        Token::Comma => {}
                        Token::Close => break,
                        other => return Err(SelectorError(format!("found '{other}', expected: ',' or ')'"))),
                    }
                }
                Token::Comma => values.push(String::new()),
                Token::Close => {
                    // `in ()` and a trailing comma both name the empty value.
                    values.push(String::new());
                    break;
                }
                other => {
                    return Err(SelectorError(format!("found '{other}', expected: ',', ')' or identifier")));
                }
            }
        }
        values.sort();
        values.dedup();
        Ok(values)
    }
}

fn check_value(value: String) -> Result<String, SelectorError> {
    match names::label_value(&value) {
        None => Ok(value),
        Some(fault) => Err(SelectorError(format!("values: Invalid value: \"{value}\": {fault}"))),
    }
}

/// One comparison of a field selector.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldRequirement {
    /// The field, as the type names it: `status.phase`.
    pub field: String,
    /// The value compared with.
    pub value: String,
    /// `true` for `=`, `false` for `!=`.
    pub equal: bool,
}

/// A field selector: all comparisons must hold. Which fields a type offers is the type's affair.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FieldSelector {
    /// All comparisons.
    pub requirements: Vec<FieldRequirement>,
}

impl FieldSelector {
    /// Parses `a=b,c!=d`; `\\`, `\,` and `\=` stand for themselves in values.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        if text.len() > MAX_TEXT {
            return Err(SelectorError(format!("selector is longer than {MAX_TEXT} bytes")));
        }
        let mut requirements = Vec::new();
        for term in split_terms(text).into_iter().filter(|t| !t.trim().is_empty()) {
            let Some(at) = term.find('=') else {
                return Err(SelectorError(format!("invalid selector: '{text}'; can't understand '{term}'")));
            };
            let (mut field, rest) = (&term[..at], &term[at + 1..]);
            let equal = match field.strip_suffix('!') {
                Some(stripped) => {
                    field = stripped;
                    false
                }
                None => true,
            };
            let value = unescape(rest.strip_prefix('=').filter(|_| equal).unwrap_or(rest));
            requirements.push(FieldRequirement { field: field.trim().to_owned(), value, equal });
            if requirements.len() > MAX_REQUIREMENTS {
                return Err(SelectorError(format!("selector has more than {MAX_REQUIREMENTS} requirements")));
            }
        }
        Ok(Self { requirements })
    }

    /// Whether all comparisons hold; `value_of` gives the object's value of a field, empty where absent.
    pub fn matches<'a>(&self, value_of: impl Fn(&str) -> &'a str) -> bool {
        self.requirements.iter().all(|r| (value_of(&r.field) == r.value) == r.equal)
    }
}

fn split_terms(text: &str) -> Vec<String> {
    let (mut terms, mut term, mut escaped) = (Vec::new(), String::new(), false);
    for c in text.chars() {
        if c == ',' && !escaped {
            terms.push(std::mem::take(&mut term));
            continue;
        }
        term.push(c);
        escaped = c == '\\' && !escaped;
    }
    terms.push(term);
    terms
}

fn unescape(text: &str) -> String {
    let (mut out, mut chars) = (String::new(), text.chars());
    while let Some(c) = chars.next() {
        out.push(if c == '\\' { chars.next().unwrap_or('\\') } else { c });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn the_grammar_selects_as_documented() {
        let web = labels(&[("app", "web"), ("n", "7"), ("e", "")]);
        let cases = [
            ("app=web", true),
            ("app==web,n", true),
            ("app!=web", false),
            ("missing!=x", true),
            ("!missing", true),
            ("!app", false),
            ("app in (web, db)", true),
            ("app notin (web)", false),
            ("missing notin (a)", true),
            ("n>6", true),
            ("n<7", false),
            ("e=", true),
            ("e in ()", true),
            ("", true),
        ];
        for (text, expected) in cases {
            assert_eq!(Selector::parse(text).unwrap().matches(&web), expected, "{text}");
        }
    }

    #[test]
    fn printing_and_parsing_agree() {
        let text = "a=b,c!=d,e in (f,g),h notin (i,j),k,!l,m>5";
        assert_eq!(Selector::parse(text).unwrap().to_string(), text);
    }

    #[test]
    fn faults_say_what_was_expected() {
        for (text, part) in [
            ("a b", "found 'b', expected: in, notin, =, ==, !=, gt, lt"),
            ("a in b", "expected: '('"),
            ("a=b,", "after ','"),
            ("=x", "expected: identifier"),
            ("a>x", "must be an integer"),
            ("a=b!", "expected: ','"),
            ("-a=b", "Invalid value"),
        ] {
            let error = Selector::parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn field_selectors_compare_and_unescape() {
        let selector = FieldSelector::parse(r"status.phase=Running,metadata.name!=a\,b").unwrap();
        let value = |name: &'static str| move |f: &str| if f == "status.phase" { "Running" } else { name };
        assert!(selector.matches(value("c")));
        assert!(!selector.matches(value("a,b")));
        assert!(FieldSelector::parse("nonsense").is_err());
        assert_eq!(FieldSelector::parse("a==b").unwrap().requirements[0].value, "b");
    }
}
