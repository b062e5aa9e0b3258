//! jq, by the jaq library: takes out of objects what expressions find. An expression is a program and may never end, so each
//! runs on a thread of its own with a time limit; of threads that do not come back there are never more than a few.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Vars, data, unwrap_valr};
use jaq_json::{Val, read};
use serde_json::Value;
use tokio::sync::Semaphore;

/// How long one run may take.
const LIMIT: Duration = Duration::from_secs(1);
/// Runs at a time, those that never end among them.
const AT_ONCE: usize = 4;
/// Longest expression, bytes.
const MAX_LENGTH: usize = 4096;

static ROOM: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(AT_ONCE)));

/// Deletes what the expressions find in each of the objects.
pub async fn delete(expressions: &[String], objects: Vec<Value>) -> Result<Vec<Value>, String> {
    let late = |_| format!("the expressions {expressions:?} take longer than {} s", LIMIT.as_secs());
    let room = tokio::time::timeout(LIMIT, Arc::clone(&ROOM).acquire_owned()).await.map_err(late)?;
    let room = room.map_err(|error| error.to_string())?;
    let program = program(expressions)?;
    let work = tokio::task::spawn_blocking(move || {
        let _room = room;
        objects.iter().map(|object| run(&program, object)).collect()
    });
    let done = tokio::time::timeout(LIMIT, work).await.map_err(late)?;
    done.map_err(|error| format!("jq failed: {error}"))?
}

fn program(expressions: &[String]) -> Result<String, String> {
    let too_long = expressions.iter().find(|e| e.len() > MAX_LENGTH);
    if let Some(long) = too_long {
        return Err(format!("an expression has {} bytes; at most {MAX_LENGTH} are allowed", long.len()));
    }
    // What is not there is nothing to delete, and no fault.
    Ok(expressions
        .iter()
        .map(|e| format!("(. as $whole | try del({e}) catch $whole)"))
        .collect::<Vec<_>>()
        .join(" | "))
}

fn run(program: &str, object: &Value) -> Result<Value, String> {
    let fault = |what: &str| format!("jqPathExpressions, as {program:?}: {what}");
    let input = read::parse_single(object.to_string().as_bytes()).map_err(|e| fault(&e.to_string()))?;
    let definitions = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
    let functions = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
    // What this process was started with is nobody's business.
    let functions = functions.filter(|(name, ..)| *name != "env");
    let arena = Arena::default();
    let file = File { code: program, path: () };
    let modules =
        Loader::new(definitions).load(&arena, file).map_err(|_| fault("it is no expression of jq"))?;
    let compiled = Compiler::default().with_funs(functions).compile(modules);
    let filter = compiled.map_err(|_| fault("it names something that jq does not know"))?;
    let context = Ctx::<data::JustLut<Val>>::new(&filter.lut, Vars::new([]));
    let mut outputs = filter.id.run((context, input)).map(unwrap_valr);
    let output = outputs.next().ok_or_else(|| fault("it answers nothing"))?;
    let output = output.map_err(|error| fault(&error.to_string()))?;
    serde_json::from_str(&output.to_string()).map_err(|error| fault(&error.to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn what_is_found_goes_and_what_never_ends_is_told() {
        let object = json!({"spec": {"containers": [{"name": "a"}, {"name": "injected"}], "replicas": 3}});
        let some = vec![
            r#".spec.containers[] | select(.name == "injected")"#.to_owned(),
            ".spec.replicas".to_owned(),
        ];
        let found = delete(&some, vec![object.clone()]).await.expect("an object");
        assert_eq!(found, [json!({"spec": {"containers": [{"name": "a"}]}})]);
        let absent = delete(&[".not.there".to_owned()], vec![object.clone()]).await.expect("an object");
        assert_eq!(absent, std::slice::from_ref(&object));
        let wrong = delete(&[".spec[".to_owned()], vec![object.clone()]).await.expect_err("no expression");
        assert!(wrong.contains("no expression of jq"), "{wrong}");
    }
}
