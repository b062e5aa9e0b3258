//! The commands that talk to a server, with kubectl's grammar, output and exit codes. All of them go through
//! `strata-client`; none knows a role.

pub mod error;

pub mod connection;

pub mod session;

pub mod target;

pub mod printing;

pub mod follow;

pub mod stir;

pub mod moment;

mod last_applied;

mod get;

mod history;

mod create;

pub mod apply;

mod diff;

mod delete;

mod edit;

mod patch;

mod label;

mod scale;

mod set;

mod logs;

mod describe;

mod rollout;

mod wait;

mod why;

mod tree;

mod queue;

mod app;

mod top;

mod explain;

mod api;

mod config;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use self::connection::ConnectionArgs;
use self::error::CliResult;
use self::session::Session;
use crate::output::stdout;

/// A command's arguments and the connection flags behind them.
#[derive(Debug, Args)]
pub struct With<A: Args> {
    #[command(flatten)]
    args: A,
    #[command(flatten)]
    connection: ConnectionArgs,
}

/// A group of commands and the connection flags behind it.
#[derive(Debug, Args)]
pub struct Group<C: Subcommand> {
    #[command(subcommand)]
    command: C,
    #[command(flatten)]
    connection: ConnectionArgs,
}

/// The resource commands; `main` flattens them into the top level of the command tree.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "made once a process")]
pub enum ResourceCommand {
    /// Print objects, as a table or in any form
    #[command(visible_alias = "list", after_help = get::EXAMPLES)]
    Get(With<get::GetArgs>),
    /// Print objects, and then every change, until Ctrl-C
    #[command(after_help = get::EXAMPLES)]
    Watch(With<get::WatchArgs>),
    /// Show an object for people, with what happened to it
    #[command(after_help = describe::EXAMPLES)]
    Describe(With<describe::DescribeArgs>),
    /// Say what an object waits for, through all layers down to its processes
    #[command(after_help = why::EXAMPLES)]
    Why(With<why::WhyArgs>),
    /// Show who changed an object, when, and which fields
    #[command(after_help = history::EXAMPLES)]
    History(With<history::HistoryArgs>),
    /// Show what an object owns, down to its processes, with status and age
    #[command(after_help = tree::EXAMPLES)]
    Tree(With<tree::TreeArgs>),
    /// Show what the controllers have to do, and have one do it now
    #[command(after_help = queue::EXAMPLES)]
    Queue(With<queue::QueueArgs>),
    /// Show layers, queues and writes live, until q
    #[command(after_help = top::EXAMPLES)]
    Top(With<top::TopArgs>),
    /// Say what a type and its fields are
    #[command(after_help = explain::EXAMPLES)]
    Explain(With<explain::ExplainArgs>),
    /// Print what containers have written
    #[command(visible_alias = "log", after_help = logs::EXAMPLES)]
    Logs(With<logs::LogsArgs>),
    /// Make objects as manifests declare them, or change them to that
    #[command(after_help = apply::EXAMPLES)]
    Apply(With<apply::ApplyArgs>),
    /// Show what a manifest would change, or what changed between two moments
    #[command(after_help = diff::EXAMPLES)]
    Diff(With<diff::DiffArgs>),
    /// Create objects, from manifests or from flags
    #[command(after_help = create::EXAMPLES)]
    Create(With<create::CreateArgs>),
    /// Delete objects, and wait until they are gone
    #[command(after_help = delete::EXAMPLES)]
    Delete(With<delete::DeleteArgs>),
    /// Change an object in your editor
    #[command(after_help = edit::EXAMPLES)]
    Edit(With<edit::EditArgs>),
    /// Change fields of an object
    #[command(after_help = patch::EXAMPLES)]
    Patch(With<patch::PatchArgs>),
    /// Set and remove labels
    #[command(after_help = label::LABEL_EXAMPLES)]
    Label(With<label::LabelArgs>),
    /// Set and remove annotations
    #[command(after_help = label::ANNOTATE_EXAMPLES)]
    Annotate(With<label::LabelArgs>),
    /// Change the number of replicas
    #[command(after_help = scale::EXAMPLES)]
    Scale(With<scale::ScaleArgs>),
    /// Change images or environment variables of a pod template
    #[command(after_help = set::EXAMPLES)]
    Set(Group<set::SetCommand>),
    /// Watch, undo, pause or repeat a roll-out
    #[command(after_help = rollout::EXAMPLES)]
    Rollout(Group<rollout::RolloutCommand>),
    /// Hold the platform to git repositories: Applications
    #[command(after_help = app::EXAMPLES)]
    App(Group<app::AppCommand>),
    /// Wait until a condition holds
    #[command(after_help = wait::EXAMPLES)]
    Wait(With<wait::WaitArgs>),
    /// List the types the server serves
    #[command(after_help = api::EXAMPLES)]
    ApiResources(With<api::ResourcesArgs>),
    /// List the groups and versions the server serves
    ApiVersions(With<api::NoArgs>),
    /// Say which server this is, and how its store is
    ClusterInfo(With<api::NoArgs>),
    /// Print the versions of this program and of the server
    Version(With<api::VersionArgs>),
    /// Show which kubeconfig, context and identity are in use
    Config(Group<config::ConfigCommand>),
    /// Print the completion script for a shell
    #[command(after_help = config::COMPLETION_EXAMPLES)]
    Completion(config::CompletionArgs),
}

/// Lets the connection flags of commands with subcommands stand behind the subcommand too: `rollout status … -n shop`.
/// The roles' commands have none of these flags and stay as they are.
pub fn reach_down(tree: clap::Command) -> clap::Command {
    let groups: Vec<String> =
        tree.get_subcommands().filter(|c| c.has_subcommands()).map(|c| c.get_name().to_owned()).collect();
    groups.into_iter().fold(tree, |tree, name| {
        tree.mut_subcommand(name, |group| {
            group.mut_args(|arg| match arg.get_help_heading() {
                Some(connection::HEADING) => arg.global(true),
                _ => arg,
            })
        })
    })
}

/// Runs a command to its end. `before` are the connection flags that stood before the command, `tree` is the whole
/// tree of commands.
pub fn run(
    before: ConnectionArgs,
    command: ResourceCommand,
    tree: impl FnOnce() -> clap::Command,
) -> ExitCode {
    let command = match command {
        ResourceCommand::Completion(args) => return finish("", config::completion(&args, tree())),
        ResourceCommand::Config(group) => {
            return finish("", config::run(&group.connection.or(before), &group.command));
        }
        ResourceCommand::Create(with) => {
            let namespace = with.connection.namespace.as_deref().or(before.namespace.as_deref());
            match create::offline(&with.args, namespace) {
                Some(outcome) => return finish("", outcome),
                None => ResourceCommand::Create(with),
            }
        }
        command => command,
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            stdout::say(&format!("error: cannot start: {error}"));
            return ExitCode::FAILURE;
        }
    };
    runtime.block_on(dispatch(before, command))
}

async fn dispatch(before: ConnectionArgs, command: ResourceCommand) -> ExitCode {
    use ResourceCommand as C;
    match command {
        C::Get(with) => online(before, with, get::get).await,
        C::Watch(with) => online(before, with, get::watch).await,
        C::Describe(with) => online(before, with, describe::run).await,
        C::Why(with) => online(before, with, why::run).await,
        C::History(with) => online(before, with, history::run).await,
        C::Diff(with) => online(before, with, diff::run).await,
        C::Tree(with) => online(before, with, tree::run).await,
        C::Queue(with) => finish("", queue::run(with.connection.or(before), with.args).await),
        C::Top(with) => {
            let connection = with.connection.or(before);
            on(connection.clone(), with.args, async |session, args| {
                top::run(session, &connection, args).await
            })
            .await
        }
        C::Explain(with) => online(before, with, explain::run).await,
        C::Logs(with) => online(before, with, logs::run).await,
        C::Apply(with) => online(before, with, apply::run).await,
        C::Create(with) => online(before, with, create::run).await,
        C::Delete(with) => online(before, with, delete::run).await,
        C::Edit(with) => online(before, with, edit::run).await,
        C::Patch(with) => online(before, with, patch::run).await,
        C::Label(with) => online(before, with, label::label).await,
        C::Annotate(with) => online(before, with, label::annotate).await,
        C::Scale(with) => online(before, with, scale::run).await,
        C::Set(group) => online_group(before, group, set::run).await,
        C::Rollout(group) => online_group(before, group, rollout::run).await,
        C::App(group) => online_group(before, group, app::run).await,
        C::Wait(with) => online(before, with, wait::run).await,
        C::ApiResources(with) => online(before, with, api::resources).await,
        C::ApiVersions(with) => online(before, with, api::versions).await,
        C::ClusterInfo(with) => online(before, with, api::cluster_info).await,
        C::Version(with) => version(before, with).await,
        // Answered before there is a runtime.
        C::Config(_) | C::Completion(_) => ExitCode::SUCCESS,
    }
}

/// Runs a command that needs a server.
async fn online<A: Args>(
    before: ConnectionArgs,
    with: With<A>,
    run: impl AsyncFnOnce(&Session, A) -> CliResult,
) -> ExitCode {
    on(with.connection.or(before), with.args, run).await
}

async fn online_group<C: Subcommand>(
    before: ConnectionArgs,
    group: Group<C>,
    run: impl AsyncFnOnce(&Session, C) -> CliResult,
) -> ExitCode {
    on(group.connection.or(before), group.command, run).await
}

async fn on<A>(
    connection: ConnectionArgs,
    args: A,
    run: impl AsyncFnOnce(&Session, A) -> CliResult,
) -> ExitCode {
    let session = match Session::open(&connection) {
        Ok(session) => session,
        Err(error) => return finish("", Err(error)),
    };
    let outcome = run(&session, args).await;
    finish(&session.origin, outcome.map_err(|error| error.knowing(session.identity_expired())))
}

/// `version` has something to say without a server.
async fn version(before: ConnectionArgs, with: With<api::VersionArgs>) -> ExitCode {
    if with.args.client_only() {
        return finish("", api::version(None, &with.args).await);
    }
    match Session::open(&with.connection.or(before)) {
        Ok(session) => {
            let outcome = api::version(Some(&session), &with.args).await;
            finish(&session.origin, outcome)
        }
        Err(error) => match api::version(None, &with.args).await {
            Ok(()) => finish("", Err(error)),
            failed => finish("", failed),
        },
    }
}

/// Says what went wrong, and picks the exit code. `origin` is where the address of the server came from.
pub fn finish(origin: &str, outcome: CliResult) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            for line in error.lines(origin) {
                stdout::say(&line);
            }
            error.code()
        }
    }
}
