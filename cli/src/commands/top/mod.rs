//! `top`: a live view of the layers, of what controllers have to do, of what is not as wished, and of what is written. It
//! follows the server's watches and asks the admin ports; it writes nothing.

mod model;

mod screen;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use crossterm::event::{Event as Key, EventStream, KeyCode, KeyEventKind, KeyModifiers};
use futures_util::StreamExt as _;
use jiff::Timestamp;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use serde_json::Value;
use strata_client::event::{Event, WatchOptions};
use strata_model::resource::{ResourceType, Verb};
use strata_runtime::admin::ask::{Place, ask};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use self::model::{Model, News, Queue};
use crate::commands::connection::ConnectionArgs;
use crate::commands::error::{CliError, CliResult, usage};
use crate::commands::queue::sockets_of;
use crate::commands::session::Session;

/// Help behind the flags.
pub const EXAMPLES: &str = "\
Examples:
  strata top                                       all that the platform does, live; q ends it
  strata top --interval 5                          drawn every 5 seconds";

/// News of all watches that may wait to be taken.
const NEWS: usize = 4096;
/// Most news taken between two looks at the keyboard.
const AT_ONCE: usize = 4096;
/// What changes without end and says nothing of convergence.
const UNSEEN: [&str; 2] = ["events", "leases"];

/// Arguments of `top`.
#[derive(Debug, Args)]
pub struct TopArgs {
    /// Seconds between two pictures
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=60))]
    interval: u64,
}

/// What a watch says, with its type.
type Told = (Arc<ResourceType>, Event);

/// Runs the command.
pub async fn run(session: &Session, connection: &ConnectionArgs, args: TopArgs) -> CliResult {
    if !std::io::IsTerminal::is_terminal(&std::io::stdout()) {
        return Err(usage(
            "top draws on a terminal; for programs there are `strata queue -o json` and `strata why -o json`",
        ));
    }
    let (news, _watches) = follow(session).await?;
    let places = sockets_of(connection);
    let server = session.client.server().to_string();
    let mut screen =
        Screen::open().map_err(|error| usage(format!("cannot draw on this terminal: {error}")))?;
    let outcome = show(&mut screen, news, places, &server, Duration::from_secs(args.interval)).await;
    screen.close();
    outcome
}

/// Watches all types that there are, but those that say nothing here.
async fn follow(session: &Session) -> CliResult<(mpsc::Receiver<Told>, JoinSet<()>)> {
    let (tell, news) = mpsc::channel(NEWS);
    let mut watches = JoinSet::new();
    let registry = session.registry().await?;
    for resource in registry.types() {
        let watched = resource.verbs.contains(&Verb::Watch);
        if !watched || UNSEEN.contains(&&*resource.id.resource) {
            continue;
        }
        let (resource, tell) = (Arc::clone(resource), tell.clone());
        let mut watch = session.watches().open(&resource, WatchOptions::default());
        watches.spawn(async move {
            while let Some(event) = watch.next().await {
                if tell.send((Arc::clone(&resource), event)).await.is_err() {
                    return;
                }
            }
        });
    }
    Ok((news, watches))
}

/// A terminal in our hands, given back however this ends.
struct Screen(Terminal<CrosstermBackend<std::io::Stdout>>);

impl Screen {
    fn open() -> std::io::Result<Self> {
        // Sets a panic hook that gives the terminal back, too.
        ratatui::try_init().map(Self)
    }

    fn close(self) {
        drop(self);
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

async fn show(
    screen: &mut Screen,
    mut news: mpsc::Receiver<Told>,
    places: Vec<Place>,
    server: &str,
    every: Duration,
) -> CliResult {
    let failed =
        |error: std::io::Error| -> CliError { usage(format!("cannot draw on this terminal: {error}")) };
    let mut model = Model::default();
    let mut keys = EventStream::new();
    let mut tick = interval(every);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut ends = [SignalKind::terminate(), SignalKind::hangup(), SignalKind::interrupt()].map(signal);
    let [Ok(terminate), Ok(hangup), Ok(interrupt)] = &mut ends else {
        return Err(usage("cannot listen for signals"));
    };
    let (asked, mut answers) = mpsc::channel::<Vec<Queue>>(1);
    let asking = tokio::spawn(ask_again(places, asked, every));
    let mut batch = Vec::with_capacity(AT_ONCE);
    let outcome = loop {
        tokio::select! {
            _ = tick.tick() => draw(screen, &model, server).map_err(failed)?,
            Some(queues) = answers.recv() => model.queues = queues,
            count = news.recv_many(&mut batch, AT_ONCE) => {
                if count == 0 {
                    break Err(usage("the server refused all watches"));
                }
                batch.drain(..).for_each(|(resource, event)| take(&mut model, &resource, &event));
            }
            key = keys.next() => match key {
                Some(Ok(Key::Key(key))) if key.kind == KeyEventKind::Press => {
                    let control = key.modifiers.contains(KeyModifiers::CONTROL);
                    match key.code {
                        KeyCode::Char('q') | KeyCode::Esc => break Ok(()),
                        KeyCode::Char('c') if control => break Ok(()),
                        _ => {}
                    }
                }
                Some(Ok(Key::Resize(..))) => draw(screen, &model, server).map_err(failed)?,
                Some(Ok(_)) => {}
                Some(Err(error)) => break Err(failed(error)),
                None => break Ok(()),
            },
            _ = terminate.recv() => break Ok(()),
            _ = hangup.recv() => break Ok(()),
            _ = interrupt.recv() => break Ok(()),
        }
    };
    asking.abort();
    outcome
}

fn draw(screen: &mut Screen, model: &Model, server: &str) -> std::io::Result<()> {
    screen.0.draw(|frame| screen::draw(frame, model, server, Timestamp::now())).map(drop)
}

fn take(model: &mut Model, resource: &ResourceType, event: &Event) {
    let now = Timestamp::now();
    match event {
        Event::Restarted => model.apply(resource, &News::Restarted, now),
        Event::Initial(object) => model.apply(resource, &News::Initial(object), now),
        Event::InitialEnd(revision) => {
            model.apply(resource, &News::Complete, now);
            model.revision = model.revision.max(*revision);
            model.trouble.clear();
        }
        Event::Applied(object, revision) => model.apply(resource, &News::Applied(object, *revision), now),
        Event::Deleted(object, revision) => model.apply(resource, &News::Deleted(object, *revision), now),
        Event::Progress(revision) => {
            model.revision = model.revision.max(*revision);
            model.trouble.clear();
        }
        Event::Lost(error) => model.trouble = format!("connection lost: {error}"),
        // A type that we may not watch is not shown.
        Event::Failed(_) => {}
    }
}

/// Asks all admin ports, again and again. A process that is gone is not shown.
async fn ask_again(places: Vec<Place>, tell: mpsc::Sender<Vec<Queue>>, every: Duration) {
    let mut tick = interval(every);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let mut queues: Vec<Queue> = Vec::new();
        for place in &places {
            let said = ask(place, http::Method::GET, "/debug/queue").await;
            let metrics = ask(place, http::Method::GET, "/metrics").await.unwrap_or_default();
            match said.as_deref().map(serde_json::from_str::<Value>) {
                Ok(Ok(shown)) => queues.extend(model::queues(&shown, &metrics)),
                Ok(Err(error)) => tracing::debug!(%place, %error, "no answer about queues"),
                Err(error) => tracing::debug!(%place, %error, "not asked"),
            }
        }
        queues.sort_by(|a, b| a.name.cmp(&b.name));
        if tell.send(queues).await.is_err() {
            return;
        }
    }
}
