//! Expressions as rules and policies have them.

use serde_json::{Value, json};

use super::budget::Budget;
use super::program::{CompileError, EvaluationError, Expression, Prepared, Scope};

fn run(source: &str, this: &Value) -> Result<bool, EvaluationError> {
    run_within(&mut Budget::default(), source, this)
}

fn run_within(budget: &mut Budget, source: &str, this: &Value) -> Result<bool, EvaluationError> {
    let compiled = Expression::compile(source, &["self", "oldSelf"]);
    let expression = compiled.unwrap_or_else(|error| panic!("{source}: {error}"));
    expression.holds(&Prepared::new(&Scope::new().with("self", this)), budget)
}

#[test]
fn expressions_of_daily_use_hold() {
    let this = json!({"min": 1, "max": 3, "name": "web-1", "tags": ["a", "b"], "env": {"k": "v"},
        "items": [{"name": "x", "n": 1}, {"name": "y", "n": 2}], "memory": "1Gi", "url": "https://u@example.com:80/a?b=c"});
    for source in [
        "self.min <= self.max",
        "has(self.min) && !has(self.gone)",
        "self.tags.all(t, t.size() == 1) && self.tags.exists(t, t == 'b')",
        "self.items.map(i, i.n).sum() == 3",
        "self.items.filter(i, i.n > 1).size() == 1",
        "self.items.exists_one(i, i.name == 'x')",
        "self.name.matches('^[a-z-]+[0-9]$') && self.name.startsWith('web')",
        "self.name.find('[0-9]') == '1' && 'a1b2'.findAll('[0-9]') == ['1', '2']",
        "quantity(self.memory).isGreaterThan(quantity('500Mi')) && isQuantity('5m') && !isQuantity('x')",
        "quantity('2').add(quantity('500m')).compareTo(quantity('2500m')) == 0",
        "url(self.url).getHostname() == 'example.com' && url(self.url).getPort() == '80'",
        "url(self.url).getQuery() == {'b': ['c']} && !isURL('a b')",
        "isIP('10.0.0.1') && ip('10.0.0.1').family() == 4 && !isIP('x')",
        "cidr('10.0.0.0/8').containsIP('10.1.2.3') && !cidr('10.0.0.0/8').containsCIDR('11.0.0.0/16')",
        "[1, 2, 3].isSorted() && [1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2",
        "sets.contains(self.tags, ['a']) && sets.intersects([1], [1, 2]) && sets.equivalent([1, 2], [2, 1, 1])",
        "'a-b'.split('-').join('+') == 'a+b' && 'A'.lowerAscii() == 'a' && 'aXa'.replace('X', 'b') == 'aba'",
        "'%s is %d'.format(['n', 1]) == 'n is 1'",
        "timestamp('2026-01-01T00:00:00Z') < timestamp('2026-01-02T00:00:00Z') && duration('1h') > duration('1m')",
        "self.?gone.orValue(5) == 5 && optional.none().hasValue() == false",
        "format.dns1123Label().validate('ok') == optional.none() && format.dns1123Label().validate('-').hasValue()",
        "'k' in self.env && self.env.all(k, self.env[k] == 'v')",
        "type(self.min) == int && dyn(1) == 1.0 && math.greatest(1, 2) == 2",
        "self.min > 5 || true",
        "has(self.gone) ? self.gone == 1 : true",
        "self.items.all(a, self.items.exists_one(b, a.name == b.name && (has(a.n) == has(b.n))))",
        "!(has(self.gone) && self.gone == 'x') && size(self.items) in [1, 2]",
        "self.items.size() > 0 ? (self.items[0].name in ['x'] && self.name.size() <= 63) : false",
        "duration('30s') <= duration('1m') && int('5') + 1 == 6 && string(1) == '1' && double(1) < 1.5",
        "self.env == {'k': 'v'} && self.tags + ['c'] == ['a', 'b', 'c'] && self.items.map(i, i.n > 1, i.name) == ['y']",
    ] {
        assert_eq!(run(source, &this), Ok(true), "{source}");
    }
}

#[test]
fn what_cannot_be_evaluated_says_why() {
    let failed = run("self.gone == 1", &json!({})).unwrap_err();
    assert_eq!(failed, EvaluationError::Failed("no such key: gone".to_owned()));
    assert!(matches!(run("self.a", &json!({"a": 1})), Err(EvaluationError::Failed(_))));
}

#[test]
fn what_is_no_expression_is_refused() {
    let compile = |source: &str| Expression::compile(source, &["self"]).map(drop);
    assert!(matches!(compile("self.a =="), Err(CompileError::Syntax(_))));
    assert!(matches!(compile("other > 1"), Err(CompileError::Undeclared { name, .. }) if name == "other"));
    assert!(matches!(compile("self.nothing_like_it()"), Err(CompileError::Undeclared { .. })));
    assert_eq!(compile(" "), Err(CompileError::Empty));
    assert_eq!(compile(&"(".repeat(500)), Err(CompileError::TooDeep));
    assert_eq!(compile(&format!("1{}", "+1".repeat(4000))), Err(CompileError::TooDeep));
    assert_eq!(compile(&"self.a && ".repeat(5000)), Err(CompileError::TooLong));
    assert_eq!(compile(&format!("1{} > 0", "+1".repeat(60))), Ok(()));
    assert_eq!(compile(&format!("{}self.a", "self.a && ".repeat(70))), Ok(()));
    assert_eq!(compile(&format!("{}true{}", "(".repeat(60), ")".repeat(60))), Ok(()));
}

#[test]
fn work_is_bounded() {
    let many: Vec<u64> = (0..2000).collect();
    let this = json!({"many": many, "text": "a".repeat(100_000)});
    for source in [
        "self.many.all(a, self.many.all(b, self.many.all(c, true)))",
        "self.many.map(a, self.many.map(b, self.many.map(c, 1))).size() > 0",
        "self.many.filter(a, self.many.filter(b, self.many.exists(c, c > 5000)) == []).size() > 0",
        "self.text.replace('a', self.text).size() > 0",
        "[self.text].map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a)\
         .map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).size() > 0",
    ] {
        let result = run_within(&mut Budget::of(50_000), source, &this);
        assert!(
            matches!(&result, Err(EvaluationError::Spent)) || format!("{result:?}").contains("cost limit"),
            "{source}: {result:?}"
        );
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(400))]
    #[test]
    fn no_text_and_no_value_breaks_the_evaluator(
        words in proptest::collection::vec(proptest::sample::select(WORDS), 1..14),
        deep in 0usize..3,
    ) {
        let source = words.join("");
        let this = json!({"a": {"b": [1, "x", null, {"c": 1.5}]}, "n": deep, "s": "text"});
        if let Ok(expression) = Expression::compile(&source, &["self", "oldSelf"]) {
            let scope = Prepared::new(&Scope::new().with("self", &this));
            // Whatever comes of it: it comes, and within the budget.
            drop(expression.evaluate(&scope, &mut Budget::of(10_000)));
        }
    }
}

const WORDS: &[&str] = &[
    "self",
    ".",
    "a",
    "b",
    "[",
    "]",
    "(",
    ")",
    "{",
    "}",
    "'x'",
    "0",
    "-1",
    "1.5",
    "u",
    "?",
    ":",
    ",",
    " + ",
    " - ",
    " * ",
    " / ",
    " % ",
    " && ",
    " || ",
    "!",
    " == ",
    " < ",
    " in ",
    "has(",
    "size(",
    ".all(",
    "e",
    ".map(e, ",
    ".exists(e, e)",
    ".?a",
    "[?0]",
    "oldSelf",
    "null",
    "true",
    "b'\\xff'",
    "9223372036854775807",
    "timestamp(",
    "duration('1h')",
    "type(",
    "int(",
    "string(",
    "dyn(",
    ".matches('(')",
    ".replace('', 'x')",
    "optional.of(",
    "Msg{",
    "a: 1",
    "\"",
    "'",
    "\\",
];
