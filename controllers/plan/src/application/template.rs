//! Texts with parameters in them: `{{name}}` as ApplicationSets write them, and of Go's templates what they are mostly used
//! for: fields, `index`, and a few functions in a row. Anything else is refused in words.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Parameters by name.
pub type Parameters = BTreeMap<String, Value>;

/// A value with parameters put into all its texts, names of members included.
pub fn render(value: &Value, parameters: &Parameters, go: bool) -> Result<Value, String> {
    Ok(match value {
        Value::String(of) => Value::String(text(of, parameters, go, false)?),
        Value::Array(items) => {
            Value::Array(items.iter().map(|v| render(v, parameters, go)).collect::<Result<_, _>>()?)
        }
        Value::Object(fields) => {
            let mut made = Map::new();
            for (name, of) in fields {
                made.insert(text(name, parameters, go, false)?, render(of, parameters, go)?);
            }
            Value::Object(made)
        }
        other => other.clone(),
    })
}

/// A text with parameters put in. `lenient`: what is not known stays as it is, as with plain templates anyway.
pub fn text(of: &str, parameters: &Parameters, go: bool, lenient: bool) -> Result<String, String> {
    let mut made = String::with_capacity(of.len());
    let mut rest = of;
    while let Some(start) = rest.find("{{") {
        let Some(length) = rest[start..].find("}}") else { break };
        made.push_str(&rest[..start]);
        let whole = &rest[start..start + length + 2];
        let inside = whole[2..whole.len() - 2].trim_matches('-').trim();
        let found = match go {
            true => {
                Some(pipeline(inside, parameters).map_err(|why| format!("the template {whole:?}: {why}"))?)
            }
            false => parameters.get(inside).cloned(),
        };
        match found {
            Some(Value::Null) if lenient => made.push_str(whole),
            Some(value) => made.push_str(&plain(&value)),
            None => made.push_str(whole),
        }
        rest = &rest[start + length + 2..];
    }
    made.push_str(rest);
    Ok(made)
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "<no value>".to_owned(),
        other => other.to_string(),
    }
}

/// `.a.b | lower | quote`, `index .list 1`, `"text"`.
fn pipeline(inside: &str, parameters: &Parameters) -> Result<Value, String> {
    let mut stages = split(inside, '|')?.into_iter();
    let first = stages.next().unwrap_or_default();
    let mut value = call(&words(&first)?, None, parameters)?;
    for stage in stages {
        value = call(&words(&stage)?, Some(value), parameters)?;
    }
    Ok(value)
}

/// Splits outside of quotes.
fn split(text: &str, at: char) -> Result<Vec<String>, String> {
    let (mut parts, mut part, mut quoted) = (Vec::new(), String::new(), false);
    for c in text.chars() {
        match c {
            '"' => {
                quoted = !quoted;
                part.push(c);
            }
            c if c == at && !quoted => parts.push(std::mem::take(&mut part).trim().to_owned()),
            c => part.push(c),
        }
    }
    if quoted {
        return Err("a quote is not closed".to_owned());
    }
    parts.push(part.trim().to_owned());
    Ok(parts)
}

fn words(stage: &str) -> Result<Vec<String>, String> {
    Ok(split(stage, ' ')?.into_iter().filter(|word| !word.is_empty()).collect())
}

fn call(words: &[String], piped: Option<Value>, parameters: &Parameters) -> Result<Value, String> {
    let Some((name, arguments)) = words.split_first() else { return Err("it is empty".to_owned()) };
    let mut values: Vec<Value> =
        arguments.iter().map(|word| operand(word, parameters)).collect::<Result<_, _>>()?;
    if values.is_empty() && piped.is_none() && (name.starts_with(['.', '"']) || name.parse::<i64>().is_ok()) {
        return operand(name, parameters);
    }
    values.extend(piped);
    let text = |at: usize| values.get(at).map(plain).ok_or_else(|| format!("{name} lacks an argument"));
    Ok(match name.as_str() {
        "index" => {
            let (of, keys) = values.split_first().ok_or("index lacks an argument")?;
            keys.iter().fold(of.clone(), |of, key| match key {
                Value::Number(at) => of[at.as_u64().unwrap_or(u64::MAX) as usize].clone(),
                key => of[plain(key).as_str()].clone(),
            })
        }
        "lower" => json!(text(0)?.to_lowercase()),
        "upper" => json!(text(0)?.to_uppercase()),
        "trim" => json!(text(0)?.trim()),
        "quote" => json!(format!("{:?}", text(0)?)),
        "replace" => json!(text(2)?.replace(&text(0)?, &text(1)?)),
        "trimPrefix" => json!(text(1)?.trim_start_matches(&text(0)?)),
        "trimSuffix" => json!(text(1)?.trim_end_matches(&text(0)?)),
        "default" => match values.get(1) {
            Some(Value::Null) | None => values.first().cloned().unwrap_or_default(),
            Some(found) if plain(found).is_empty() => values.first().cloned().unwrap_or_default(),
            Some(found) => found.clone(),
        },
        other => return Err(format!("{other:?} is not supported; fields, index and simple functions are")),
    })
}

fn operand(word: &str, parameters: &Parameters) -> Result<Value, String> {
    if let Some(quoted) = word.strip_prefix('"').and_then(|w| w.strip_suffix('"')) {
        return Ok(json!(quoted));
    }
    if let Ok(number) = word.parse::<i64>() {
        return Ok(json!(number));
    }
    let Some(path) = word.strip_prefix('.') else {
        return Err(format!("{word:?} is not supported; fields, index and simple functions are"));
    };
    let mut parts = path.split('.');
    let mut value = parts.next().and_then(|name| parameters.get(name)).cloned().unwrap_or_default();
    for part in parts {
        value = value.get_mut(part).map(Value::take).unwrap_or_default();
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_functions_are_put_in_and_others_refused() {
        let parameters = Parameters::from([
            ("name".to_owned(), json!("Web")),
            ("path".to_owned(), json!({"segments": ["a", "b"], "basename": "b"})),
        ]);
        let go = |of: &str| text(of, &parameters, true, false);
        assert_eq!(go("x-{{ .name | lower }}-{{index .path.segments 1}}").unwrap(), "x-web-b");
        assert_eq!(go("{{ default \"none\" .absent }}").unwrap(), "none");
        assert_eq!(go("{{ .name | replace \"W\" \"w\" }}").unwrap(), "web");
        assert_eq!(go("{{.absent}}").unwrap(), "<no value>");
        assert!(go("{{ range .x }}").unwrap_err().contains("not supported"));
        assert_eq!(text("{{name}} {{ novel }}", &parameters, false, false).unwrap(), "Web {{ novel }}");
    }
}
