//! One request in the terms that both facades share, sent over either, and its answer in common terms.

use serde_json::{Value, json};
use strata_wire::convert::{code_of, from_rpc};
use strata_wire::v1::resources_client::ResourcesClient;
use strata_wire::v1::{self, EventType};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;

use super::grpc::channel;
use super::rest::{Answer, Rest};
use super::server::TestServer;

/// A verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Get,
    List,
    Create,
    Update,
    Merge,
    Json,
    Strategic,
    Apply,
    Delete,
    DeleteMany,
}

/// A request.
#[derive(Clone, Debug)]
pub struct Ask {
    how: How,
    place: (&'static str, &'static str, &'static str),
    namespace: &'static str,
    name: &'static str,
    part: &'static str,
    query: Vec<(&'static str, &'static str)>,
    body: String,
}

impl Ask {
    pub fn new(
        how: How,
        place: (&'static str, &'static str, &'static str),
        namespace: &'static str,
        name: &'static str,
    ) -> Self {
        Self { how, place, namespace, name, part: "", query: Vec::new(), body: String::new() }
    }

    pub fn body(self, body: Value) -> Self {
        Self { body: body.to_string(), ..self }
    }

    pub fn text(self, body: &str) -> Self {
        Self { body: body.to_owned(), ..self }
    }

    pub fn part(self, part: &'static str) -> Self {
        Self { part, ..self }
    }

    pub fn query(mut self, name: &'static str, value: &'static str) -> Self {
        self.query.push((name, value));
        self
    }

    fn option(&self, name: &str) -> String {
        let found = self.query.iter().find(|(n, _)| *n == name);
        found.map(|(_, value)| (*value).to_owned()).unwrap_or_default()
    }

    /// Who manages what is written: both facades' clients are named the same.
    fn manager(&self) -> String {
        match self.query.iter().find(|(n, _)| *n == "fieldManager") {
            Some((_, manager)) => (*manager).to_owned(),
            None => "tester".to_owned(),
        }
    }

    fn resource(&self) -> Option<v1::ResourceRef> {
        let (group, version, resource) = self.place;
        let (group, version) = (group.to_owned(), version.to_owned());
        Some(v1::ResourceRef { group, version, resource: resource.to_owned() })
    }

    fn writes(&self) -> bool {
        !matches!(self.how, How::Get | How::List | How::Delete | How::DeleteMany)
    }
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Answered {
    /// A Status, and the gRPC code that it should have.
    Refused(Value, tonic::Code),
    /// An object, and the sentences that come with it.
    Object(Value, Vec<String>),
    /// Items, revision, token and how many follow.
    List(Vec<Value>, String, String, u64),
}

impl Answered {
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused(..))
    }
}

/// Takes out what chance and clocks decide.
pub fn scrub(answer: Answered) -> Answered {
    match answer {
        Answered::Refused(mut status, code) => {
            wash(&mut status);
            Answered::Refused(status, code)
        }
        Answered::Object(mut object, warnings) => {
            wash(&mut object);
            Answered::Object(object, warnings)
        }
        Answered::List(mut items, revision, token, remaining) => {
            items.iter_mut().for_each(wash);
            Answered::List(items, revision, token, remaining)
        }
    }
}

fn wash(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                match name.as_str() {
                    "uid"
                    | "creationTimestamp"
                    | "deletionTimestamp"
                    | "time"
                    | "lastTransitionTime"
                    | "token"
                    | "expirationTimestamp"
                        if member.is_string() =>
                    {
                        *member = json!("washed");
                    }
                    "message" => {
                        let text = member.as_str().unwrap_or_default();
                        *member = json!(without_uids(text));
                    }
                    _ => wash(member),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(wash),
        _ => {}
    }
}

/// The text with what looks like a uid left out.
fn without_uids(text: &str) -> String {
    let is_uid = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_ascii_hexdigit());
        word.len() == 36 && word.matches('-').count() == 4
    };
    text.split(' ').map(|word| if is_uid(word) { "UID" } else { word }).collect::<Vec<_>>().join(" ")
}

fn escape(text: &str) -> String {
    text.bytes()
        .map(|b| if b.is_ascii_alphanumeric() { char::from(b).to_string() } else { format!("%{b:02X}") })
        .collect()
}

fn path(ask: &Ask) -> String {
    let (group, version, resource) = ask.place;
    let mut path =
        if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
    if !ask.namespace.is_empty() {
        path.push_str(&format!("/namespaces/{}", ask.namespace));
    }
    path.push_str(&format!("/{resource}"));
    for part in [ask.name, ask.part].into_iter().filter(|part| !part.is_empty()) {
        path.push_str(&format!("/{part}"));
    }
    let mut query: Vec<String> = ask
        .query
        .iter()
        .filter(|(name, _)| !name.starts_with("preconditions.") && *name != "fieldManager")
        .map(|(name, value)| format!("{name}={}", escape(value)))
        .collect();
    if ask.writes() {
        query.push(format!("fieldManager={}", escape(&ask.manager())));
    }
    format!("{path}?{}", query.join("&"))
}

/// Sends it over REST.
pub async fn send_rest(rest: &Rest, ask: &Ask) -> Answered {
    let (method, media) = match ask.how {
        How::Get | How::List => ("GET", ""),
        How::Create => ("POST", "application/json"),
        How::Update => ("PUT", "application/json"),
        How::Merge => ("PATCH", "application/merge-patch+json"),
        How::Json => ("PATCH", "application/json-patch+json"),
        How::Strategic => ("PATCH", "application/strategic-merge-patch+json"),
        How::Apply => ("PATCH", "application/apply-patch+yaml"),
        How::Delete | How::DeleteMany => ("DELETE", "application/json"),
    };
    let mut body = ask.body.clone();
    if matches!(ask.how, How::Delete | How::DeleteMany) {
        body = String::new();
        let (uid, version) = (ask.option("preconditions.uid"), ask.option("preconditions.resourceVersion"));
        if !uid.is_empty() || !version.is_empty() {
            let mut wanted = json!({});
            for (name, value) in [("uid", uid), ("resourceVersion", version)] {
                if !value.is_empty() {
                    wanted[name] = json!(value);
                }
            }
            body = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": wanted}).to_string();
        }
    }
    let headers: &[(&str, &str)] = if media.is_empty() { &[] } else { &[("content-type", media)] };
    let answer = rest.send(method, &path(ask), headers, body).await;
    of_rest(ask, &answer)
}

fn of_rest(ask: &Ask, answer: &Answer) -> Answered {
    if answer.code >= 400 {
        // Of a group that is not served there is a page, no Status.
        let status = match serde_json::from_str::<Value>(&answer.text) {
            Ok(status) => status,
            Err(_) => panic!("{ask:?}: {}", answer.text),
        };
        let typed: strata_model::status::Status = serde_json::from_value(status.clone()).unwrap();
        return Answered::Refused(status, code_of(&typed));
    }
    let mut object = answer.json();
    if matches!(ask.how, How::List | How::DeleteMany) {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let (revision, token) = (text("resourceVersion"), text("continue"));
        let remaining = object["metadata"]["remainingItemCount"].as_u64().unwrap_or(0);
        let Value::Array(items) = object["items"].take() else { panic!("{ask:?}: {}", answer.text) };
        return Answered::List(items, revision, token, remaining);
    }
    let warnings = answer.headers.get_all("warning").iter().map(|warning| {
        let text = warning.to_str().unwrap();
        let text = text.strip_prefix("299 - \"").and_then(|text| text.strip_suffix('"')).unwrap();
        text.replace("\\\"", "\"").replace("\\\\", "\\")
    });
    Answered::Object(object, warnings.collect())
}

/// A client of the gRPC facade.
pub struct Grpc(ResourcesClient<Channel>);

impl Grpc {
    pub fn new(server: &TestServer, who: Option<(&str, &str)>) -> Self {
        Self(ResourcesClient::new(channel(server, who)))
    }

    /// Sends it over gRPC.
    pub async fn send(&mut self, ask: &Ask) -> Answered {
        match self.call(ask).await {
            Ok(answered) => answered,
            Err(error) => {
                let status = from_rpc(&error).unwrap_or_else(|| panic!("{ask:?}: no Status in {error:?}"));
                assert_eq!(error.message(), status.message);
                Answered::Refused(serde_json::to_value(status).unwrap(), error.code())
            }
        }
    }

    async fn call(&mut self, ask: &Ask) -> Result<Answered, tonic::Status> {
        match ask.how {
            How::Get if ask.part == "log" => self.log(ask).await,
            How::Get | How::List => self.read(ask).await,
            How::Delete | How::DeleteMany => self.delete(ask).await,
            _ => self.write(ask).await,
        }
    }

    async fn log(&mut self, ask: &Ask) -> Result<Answered, tonic::Status> {
        let (namespace, name) = (ask.namespace.to_owned(), ask.name.to_owned());
        let container = ask.option("container");
        let request = v1::LogsRequest { namespace, name, container, ..Default::default() };
        let chunk = self.0.logs(request).await?.into_inner().message().await?;
        let text = chunk.map_or(String::new(), |chunk| String::from_utf8_lossy(&chunk.data).into());
        Ok(Answered::Object(json!(text), Vec::new()))
    }

    async fn read(&mut self, ask: &Ask) -> Result<Answered, tonic::Status> {
        let (resource, namespace) = (ask.resource(), ask.namespace.to_owned());
        let resource_version = ask.option("resourceVersion");
        let resource_version_match = ask.option("resourceVersionMatch");
        let projection = 0;
        if ask.how == How::Get {
            let (name, subresource) = (ask.name.to_owned(), ask.part.to_owned());
            let request = v1::GetRequest {
                resource,
                namespace,
                name,
                subresource,
                resource_version,
                projection,
                resource_version_match,
            };
            let json = self.0.get(request).await?.into_inner().json;
            return Ok(Answered::Object(serde_json::from_slice(&json).unwrap(), Vec::new()));
        }
        let request = v1::ListRequest {
            resource,
            namespace,
            label_selector: ask.option("labelSelector"),
            field_selector: ask.option("fieldSelector"),
            limit: ask.option("limit").parse().unwrap_or(0),
            continue_token: ask.option("continue"),
            resource_version,
            resource_version_match,
            projection,
        };
        gather(self.0.list(request).await?.into_inner()).await
    }

    async fn delete(&mut self, ask: &Ask) -> Result<Answered, tonic::Status> {
        let (resource, namespace) = (ask.resource(), ask.namespace.to_owned());
        let options = Some(v1::DeleteOptions {
            grace_period_seconds: ask.option("gracePeriodSeconds").parse().ok(),
            propagation_policy: ask.option("propagationPolicy"),
            uid: ask.option("preconditions.uid"),
            resource_version: ask.option("preconditions.resourceVersion"),
            dry_run: ask.option("dryRun") == "All",
            cause: String::new(),
        });
        if ask.how == How::DeleteMany {
            let (label_selector, field_selector) = (ask.option("labelSelector"), ask.option("fieldSelector"));
            let request =
                v1::DeleteCollectionRequest { resource, namespace, label_selector, field_selector, options };
            return gather(self.0.delete_collection(request).await?.into_inner()).await;
        }
        let request = v1::DeleteRequest { resource, namespace, name: ask.name.to_owned(), options };
        let answer = self.0.delete(request).await?.into_inner();
        Ok(Answered::Object(serde_json::from_slice(&answer.json).unwrap(), answer.warnings))
    }

    async fn write(&mut self, ask: &Ask) -> Result<Answered, tonic::Status> {
        let (resource, namespace, name) = (ask.resource(), ask.namespace.to_owned(), ask.name.to_owned());
        let (subresource, object) = (ask.part.to_owned(), ask.body.clone().into());
        let options = Some(v1::WriteOptions {
            dry_run: ask.option("dryRun") == "All",
            field_manager: ask.manager(),
            field_validation: ask.option("fieldValidation"),
            cause: String::new(),
        });
        let patch = match ask.how {
            How::Json => v1::PatchType::Json,
            How::Strategic => v1::PatchType::Strategic,
            How::Apply => v1::PatchType::Apply,
            _ => v1::PatchType::Merge,
        };
        let answer = match ask.how {
            How::Create => {
                let request = v1::CreateRequest { resource, namespace, name, subresource, object, options };
                self.0.create(request).await?
            }
            How::Update => {
                let request = v1::UpdateRequest { resource, namespace, name, subresource, object, options };
                self.0.update(request).await?
            }
            _ => {
                let request = v1::PatchRequest {
                    resource,
                    namespace,
                    name,
                    subresource,
                    r#type: patch.into(),
                    patch: object,
                    options,
                    force: ask.option("force") == "true",
                };
                self.0.patch(request).await?
            }
        };
        let written = answer.into_inner();
        Ok(Answered::Object(serde_json::from_slice(&written.object).unwrap(), written.warnings))
    }
}

async fn gather(mut chunks: tonic::Streaming<v1::ListChunk>) -> Result<Answered, tonic::Status> {
    let (mut items, mut last) = (Vec::new(), v1::ListChunk::default());
    while let Some(chunk) = chunks.message().await? {
        items.extend(chunk.items.iter().map(|item| serde_json::from_slice::<Value>(item).unwrap()));
        last = chunk;
    }
    Ok(Answered::List(items, last.resource_version, last.continue_token, last.remaining))
}

/// An event: its type, and the washed object.
pub type Told = (String, Value);

/// The events of config maps from the beginning up to a revision, over REST.
pub async fn rest_events(rest: &Rest, through: u64) -> Vec<Told> {
    let path = "/api/v1/configmaps?watch=1&resourceVersion=1&allowWatchBookmarks=true&timeoutSeconds=2";
    let mut lines = rest.watch(path).await;
    let mut told = Vec::new();
    while let Some(mut event) = lines.next().await {
        let revision =
            event["object"]["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap();
        assert!(revision <= through);
        if event["type"] != "BOOKMARK" {
            let mut object = event["object"].take();
            wash(&mut object);
            told.push((event["type"].as_str().unwrap().to_owned(), object));
        }
    }
    told
}

/// The same over gRPC.
pub async fn grpc_events(grpc: &mut Grpc, through: u64) -> Vec<Told> {
    use v1::watch_request::Say;
    use v1::watch_response::Say as Said;
    let (say, said) = tokio::sync::mpsc::channel(4);
    let mut hear = grpc.0.watch(ReceiverStream::new(said)).await.unwrap().into_inner();
    let open = v1::WatchOpen {
        resource: super::grpc::resource("", "configmaps"),
        resource_version: "1".to_owned(),
        window: 1_000,
        ..Default::default()
    };
    for say_it in [Say::Open(open), Say::AskProgress(v1::WatchAskProgress {})] {
        say.send(v1::WatchRequest { watch_id: 1, say: Some(say_it) }).await.unwrap();
    }
    let mut told = Vec::new();
    loop {
        match hear.message().await.unwrap().unwrap().say.unwrap() {
            Said::Events(events) => told.extend(events.events.into_iter().map(|event| {
                let word = match event.r#type() {
                    EventType::Added => "ADDED",
                    EventType::Modified => "MODIFIED",
                    EventType::Deleted => "DELETED",
                    EventType::Unspecified => panic!("an event of no type"),
                };
                let mut object = serde_json::from_slice(&event.object).unwrap();
                wash(&mut object);
                (word.to_owned(), object)
            })),
            Said::Progress(progress) if progress.revision >= through => return told,
            Said::Progress(_) => {}
            other => panic!("{other:?}"),
        }
    }
}
