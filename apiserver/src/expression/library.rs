//! What expressions may call beside the standard library: the functions that Kubernetes adds. Pure.

mod lists;
mod network;
mod numbers;
mod texts;

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use ::cel::common::types::{CelBool, CelInt, CelString, Type};
use ::cel::common::value::{CowVal, Val};
use ::cel::objects::Opaque;
use ::cel::{DeclarationError, Env, ExecutionError, Value as Cel, extensions};

use super::meter;

/// What a function is given.
type Arguments<'b, 'v> = Vec<CowVal<'b, 'v>>;
/// What a function gives.
type Outcome<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;
/// A function.
type Function = for<'b, 'v> fn(Arguments<'b, 'v>) -> Outcome<'b, 'v>;

/// Functions of the standard library and its extensions.
const STANDARD: &[&str] = &[
    "abs",
    "base64.decode",
    "base64.encode",
    "bool",
    "bytes",
    "charAt",
    "contains",
    "distinct",
    "double",
    "duration",
    "dyn",
    "endsWith",
    "flatten",
    "format",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getFullYear",
    "getHours",
    "getMilliseconds",
    "getMinutes",
    "getMonth",
    "getSeconds",
    "hasValue",
    "indexOf",
    "int",
    "join",
    "lastIndexOf",
    "lists.range",
    "lowerAscii",
    "matches",
    "math.abs",
    "math.bitAnd",
    "math.bitNot",
    "math.bitOr",
    "math.bitShiftLeft",
    "math.bitShiftRight",
    "math.bitXor",
    "math.ceil",
    "math.floor",
    "math.greatest",
    "math.isFinite",
    "math.isInf",
    "math.isNaN",
    "math.least",
    "math.round",
    "math.sign",
    "math.sqrt",
    "math.trunc",
    "max",
    "min",
    "optFlatMap",
    "optMap",
    "optional.none",
    "optional.of",
    "optional.ofNonZeroValue",
    "or",
    "orValue",
    "replace",
    "reverse",
    "size",
    "slice",
    "sort",
    "sortBy",
    "split",
    "startsWith",
    "string",
    "strings.quote",
    "substring",
    "timestamp",
    "trim",
    "type",
    "uint",
    "unwrap",
    "unwrapOpt",
    "upperAscii",
    "value",
    "has",
    "all",
    "exists",
    "exists_one",
    "existsOne",
    "map",
    "filter",
];

/// Types that expressions may name.
const TYPES: &[&str] = &[
    "bool",
    "bytes",
    "double",
    "int",
    "list",
    "map",
    "null_type",
    "string",
    "timestamp",
    "duration",
    "type",
    "uint",
    "optional",
    "math",
    "format",
    "lists",
    "strings",
    "base64",
    "sets",
    "ip",
    "google",
];

static OWN: LazyLock<Mutex<BTreeSet<String>>> = LazyLock::new(Mutex::default);

/// Whether a name is a function's.
pub fn is_function(name: &str) -> bool {
    let operator = |name: &str| name.starts_with(['_', '-', '!']) || name.contains('@');
    let last = name.rsplit('.').next().unwrap_or(name);
    operator(name)
        || STANDARD.iter().any(|known| *known == name || *known == last)
        || STANDARD.iter().any(|known| known.rsplit('.').next() == Some(last))
        || OWN
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .any(|known| known.rsplit('.').next() == Some(last))
}

/// Whether a name is that of a type or of a group of functions.
pub fn is_type(name: &str) -> bool {
    TYPES.contains(&name)
}

/// Everything that expressions may call.
pub fn environment() -> Env {
    let mut env = Env::stdlib();
    if let Err(error) = declare(&mut env) {
        // Names are constants; a clash is found by the first test that runs.
        tracing::error!(%error, "functions of expressions cannot be declared");
    }
    env
}

fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_extension(extensions::strings)?;
    env.add_extension(extensions::lists)?;
    env.add_extension(extensions::math)?;
    env.add_extension(extensions::encoders)?;
    meter::declare(env)?;
    texts::declare(env)?;
    lists::declare(env)?;
    numbers::declare(env)?;
    network::declare(env)
}

/// Declares a function.
fn global(
    env: &mut Env,
    name: &str,
    arguments: Vec<Type>,
    function: Function,
) -> Result<(), DeclarationError> {
    remember(name);
    let id = identity(name, &arguments);
    env.add_overload(name, &id, arguments, function)
}

/// Declares a method.
fn member(
    env: &mut Env,
    name: &str,
    target: Type,
    arguments: Vec<Type>,
    function: Function,
) -> Result<(), DeclarationError> {
    remember(name);
    let id = format!("{}.{}", target.name(), identity(name, &arguments));
    env.add_member_overload(name, &id, target, arguments, function)
}

fn remember(name: &str) {
    OWN.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
}

fn identity(name: &str, arguments: &[Type]) -> String {
    let arguments: Vec<&str> = arguments.iter().map(Type::name).collect();
    format!("strata.{name}({})", arguments.join(","))
}

fn fault(function: &str, why: impl ToString) -> ExecutionError {
    ExecutionError::function_error(function, why)
}

fn text<'a>(arguments: &'a [CowVal<'_, '_>], at: usize) -> Result<&'a str, ExecutionError> {
    let value = arguments.get(at).ok_or_else(|| ExecutionError::invalid_argument_count(at + 1, at))?;
    match value.downcast_ref::<CelString<'_>>() {
        Some(text) => Ok(text.inner()),
        None => Err(fault("argument", "is no string")),
    }
}

fn whole(arguments: &[CowVal<'_, '_>], at: usize) -> Result<i64, ExecutionError> {
    let value = arguments.get(at).ok_or_else(|| ExecutionError::invalid_argument_count(at + 1, at))?;
    value.downcast_ref::<CelInt>().map(|n| *n.inner()).ok_or_else(|| fault("argument", "is no int"))
}

fn plain(arguments: &[CowVal<'_, '_>], at: usize) -> Result<Cel, ExecutionError> {
    let value = arguments.get(at).ok_or_else(|| ExecutionError::invalid_argument_count(at + 1, at))?;
    Cel::try_from(value.as_ref())
}

/// A value of one of our own types.
fn own<T: Clone + 'static>(arguments: &[CowVal<'_, '_>], at: usize) -> Result<T, ExecutionError> {
    match plain(arguments, at)? {
        Cel::Opaque(value) => {
            value.downcast_ref::<T>().cloned().ok_or_else(|| fault("argument", "is of another type"))
        }
        other => Err(fault("argument", format!("is {}", other.type_of()))),
    }
}

fn give<'b, 'v>(value: Cel) -> Outcome<'b, 'v> {
    let value: Box<dyn Val> = value.try_into()?;
    Ok(CowVal::Owned(value))
}

fn opaque<'b, 'v>(value: impl Opaque) -> Outcome<'b, 'v> {
    give(Cel::Opaque(Arc::new(value)))
}

fn flag<'b, 'v>(flag: bool) -> Outcome<'b, 'v> {
    Ok(CowVal::owned(CelBool::from(flag)))
}

fn number<'b, 'v>(number: i64) -> Outcome<'b, 'v> {
    Ok(CowVal::owned(CelInt::from(number)))
}

fn words<'b, 'v>(text: impl Into<String>) -> Outcome<'b, 'v> {
    Ok(CowVal::owned(CelString::from(text.into())))
}
