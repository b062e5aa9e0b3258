//! Text: regular expressions, replacement within bounds, formats of names.

use std::sync::Arc;

use ::cel::common::types::{DYN_TYPE, INT_TYPE, STRING_TYPE, Type};
use ::cel::objects::{Opaque, OptionalValue};
use ::cel::{DeclarationError, Env, ExecutionError, Value as Cel};
use regex::Regex;
use strata_model::names;

use super::super::budget::spend;
use super::super::meter::{REPLACE, SPENT};
use super::{Arguments, Outcome, fault, give, global, member, opaque, own, text, whole, words};

/// Most bytes that one replacement may make.
const MAX_REPLACED: usize = 4 * 1024 * 1024;
/// Most bytes of a compiled regular expression.
const MAX_REGEX: usize = 1024 * 1024;

/// A format of names.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Format(&'static str);

impl Opaque for Format {
    fn runtime_type_name(&self) -> &str {
        "kubernetes.NamedFormat"
    }
}

pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    member(env, "find", STRING_TYPE, vec![STRING_TYPE], find)?;
    member(env, "findAll", STRING_TYPE, vec![STRING_TYPE], find_all)?;
    member(env, "findAll", STRING_TYPE, vec![STRING_TYPE, INT_TYPE], find_all)?;
    member(env, REPLACE, STRING_TYPE, vec![STRING_TYPE, STRING_TYPE], replace)?;
    member(env, REPLACE, STRING_TYPE, vec![STRING_TYPE, STRING_TYPE, INT_TYPE], replace)?;
    global(env, "format.dns1123Label", vec![], |_| opaque(Format("dns1123Label")))?;
    global(env, "format.dns1123Subdomain", vec![], |_| opaque(Format("dns1123Subdomain")))?;
    global(env, "format.dns1035Label", vec![], |_| opaque(Format("dns1035Label")))?;
    global(env, "format.qualifiedName", vec![], |_| opaque(Format("qualifiedName")))?;
    global(env, "format.labelValue", vec![], |_| opaque(Format("labelValue")))?;
    global(env, "format.uuid", vec![], |_| opaque(Format("uuid")))?;
    member(env, "validate", Type::new_opaque_type("kubernetes.NamedFormat"), vec![DYN_TYPE], validate)
}

fn regex(pattern: &str, function: &str) -> Result<Regex, ExecutionError> {
    if !spend(1 + pattern.len() as u64 / 10) {
        return Err(fault("cost", SPENT));
    }
    let built = regex::RegexBuilder::new(pattern).size_limit(MAX_REGEX).build();
    built.map_err(|error| fault(function, error))
}

fn find<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let regex = regex(text(&arguments, 1)?, "find")?;
    words(regex.find(text(&arguments, 0)?).map_or("", |found| found.as_str()))
}

fn find_all<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let regex = regex(text(&arguments, 1)?, "findAll")?;
    let most = if arguments.len() > 2 { whole(&arguments, 2)? } else { -1 };
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let found = regex.find_iter(text(&arguments, 0)?).take(most);
    let found = found.map(|found| Cel::String(Arc::new(found.as_str().to_owned()))).collect();
    give(Cel::List(Arc::new(found)))
}

fn replace<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let (whole_text, from, to) = (text(&arguments, 0)?, text(&arguments, 1)?, text(&arguments, 2)?);
    let most = if arguments.len() > 3 { whole(&arguments, 3)? } else { -1 };
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let times = whole_text.matches(from).count().min(most);
    if times.saturating_mul(to.len()).saturating_add(whole_text.len()) > MAX_REPLACED {
        return Err(fault("cost", SPENT));
    }
    words(whole_text.replacen(from, to, most))
}

fn validate<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let format: Format = own(&arguments, 0)?;
    let value = text(&arguments, 1)?;
    let fault = match format.0 {
        "dns1123Label" => names::dns_label(value),
        "dns1123Subdomain" => names::dns_subdomain(value),
        "dns1035Label" => names::dns_1035_label(value),
        "qualifiedName" => names::qualified_name(value),
        "labelValue" => names::label_value(value),
        _ => uuid::Uuid::parse_str(value).err().map(|_| "does not match the UUID format".to_owned()),
    };
    let faults = match fault {
        Some(fault) => OptionalValue::of(Cel::List(Arc::new(vec![Cel::String(Arc::new(fault))]))),
        None => OptionalValue::none(),
    };
    opaque(faults)
}
