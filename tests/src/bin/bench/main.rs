//! The bench of the whole project: `cargo run --release -p strata-tests --bin bench -- SUITE`.
//!
//! Each suite drives Strata and what it is compared with side by side, in alternating rounds on one disk, and prints a
//! table, then machine lines: `figure NAME VALUE UNIT` and `ratio NAME VALUE`. Holds no assertion about time: what a
//! figure should be is printed beside it.

mod report;
mod context;
mod load;
mod process;
mod floor;
mod etcd;
mod host;
mod rest;
mod grpc;
mod watching;
mod store;
mod api;
mod scale;
mod gitops;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use context::{Case, Context, Outcome};
use host::HostArgs;

/// Measures Strata beside what it is compared with, and prints a table and machine lines.
#[derive(Parser)]
#[command(name = "bench", max_term_width = 100, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    suite: Suite,
}

#[derive(Subcommand)]
enum Suite {
    /// The store against a real etcd, and against a plain log on the same disk.
    Store(SuiteArgs),
    /// The API server over TLS, against etcd and against a server that only sends bytes.
    Api(SuiteArgs),
    /// A whole platform of real processes with 1,000 simulated nodes and 10,000 pods.
    Scale(SuiteArgs),
    /// A thousand Applications of one git repository on a whole platform.
    Gitops(SuiteArgs),
    /// A part of a measurement in a process of its own.
    #[command(hide = true)]
    Host(HostArgs),
}

/// What every suite takes.
#[derive(Args)]
struct SuiteArgs {
    /// Only the measurements of these names; see the table for all of them.
    #[arg(long, num_args = 1.., value_name = "NAME")]
    only: Vec<String>,
    /// Alternating rounds of each measurement; the median counts.
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Small sizes and short rounds: shows that the bench works, not how fast anything is.
    #[arg(long)]
    quick: bool,
    /// Directory on the disk to measure; default: the one for temporary files.
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

fn main() -> ExitCode {
    let (cases, args): (Vec<Case>, SuiteArgs) = match Cli::parse().suite {
        Suite::Store(args) => (store::cases(), args),
        Suite::Api(args) => (api::cases(), args),
        Suite::Scale(args) => (scale::cases(), args),
        Suite::Gitops(args) => (gitops::cases(), args),
        Suite::Host(args) => return done(host::run(&args)),
    };
    done(run(cases, args))
}

fn done(outcome: Outcome<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(cases: Vec<Case>, args: SuiteArgs) -> Outcome<()> {
    let known: Vec<&str> = cases.iter().flat_map(|case| case.names.iter().copied()).collect();
    if let Some(unknown) = args.only.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("--only {unknown}: no such measurement; there are {}", known.join(", ")).into());
    }
    let wanted = |case: &Case| {
        args.only.is_empty() || case.names.iter().any(|name| args.only.iter().any(|only| only == name))
    };
    let mut context = Context::new(usize::from(args.rounds), args.quick, args.directory)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut failed = Vec::new();
    for case in cases.into_iter().filter(wanted) {
        eprintln!("measuring {} …", case.names.join(", "));
        if let Err(error) = runtime.block_on((case.run)(&mut context)) {
            eprintln!("  failed: {error}");
            failed.push(case.names.join(", "));
        }
    }
    let cores = std::thread::available_parallelism()?;
    println!("strata {}, {}, {cores} cores\n", env!("CARGO_PKG_VERSION"), etcd::version());
    context.report.print();
    if failed.is_empty() { Ok(()) } else { Err(format!("not measured: {}", failed.join("; ")).into()) }
}
