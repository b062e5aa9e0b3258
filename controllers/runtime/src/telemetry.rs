//! Counters and gauges of a process, in the names Kubernetes uses; all there from the start, at zero.

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use std::sync::atomic::AtomicU64;

use crate::queue::shown::Counts;

type Name = [(&'static str, &'static str); 1];
type Labels = Vec<(&'static str, String)>;
type Seconds = Gauge<f64, AtomicU64>;

/// How a reconcile ended, as counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Settled, and nothing was written.
    Noop,
    /// Settled, after writes.
    Wrote,
    /// Failed, to be retried.
    Failed,
    /// Failed for good.
    Terminal,
    /// It panicked.
    Panicked,
    /// It took too long.
    TimedOut,
}

impl Ending {
    const ALL: [Self; 6] =
        [Self::Noop, Self::Wrote, Self::Failed, Self::Terminal, Self::Panicked, Self::TimedOut];

    /// The label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Noop => "noop",
            Self::Wrote => "wrote",
            Self::Failed => "error",
            Self::Terminal => "terminal",
            Self::Panicked => "panic",
            Self::TimedOut => "timeout",
        }
    }
}

/// All metrics of one controller.
pub struct Metrics {
    registry: Registry,
    name: &'static str,
    adds: Family<Name, Counter>,
    dedups: Family<Name, Counter>,
    retries: Family<Name, Counter>,
    depth: Family<Name, Gauge>,
    running: Family<Name, Gauge>,
    parked: Family<Name, Gauge>,
    oldest: Family<Name, Seconds>,
    waited: Family<Name, Histogram>,
    worked: Family<Name, Histogram>,
    converged: Family<Name, Histogram>,
    reconciles: Family<Labels, Counter>,
    objects: Family<Labels, Gauge>,
    leading: Family<Name, Gauge>,
    last: std::sync::Mutex<Counts>,
}

/// 10 µs to 10 s.
const BUCKETS: [f64; 7] = [1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0];
/// 10 ms to an hour.
const CONVERGE_BUCKETS: [f64; 8] = [0.01, 0.1, 0.5, 1.0, 5.0, 30.0, 300.0, 3600.0];

impl Metrics {
    /// The metrics of a controller.
    pub fn new(name: &'static str) -> Self {
        let mut metrics = Self {
            registry: Registry::default(),
            name,
            adds: Family::default(),
            dedups: Family::default(),
            retries: Family::default(),
            depth: Family::default(),
            running: Family::default(),
            parked: Family::default(),
            oldest: Family::default(),
            waited: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            worked: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            converged: Family::new_with_constructor(|| Histogram::new(CONVERGE_BUCKETS)),
            reconciles: Family::default(),
            objects: Family::default(),
            leading: Family::default(),
            last: std::sync::Mutex::default(),
        };
        metrics.register();
        metrics.zero();
        metrics
    }

    fn register(&mut self) {
        let r = &mut self.registry;
        r.register("workqueue_adds", "Keys added", self.adds.clone());
        r.register("workqueue_dedups", "Additions of a key that was waiting already", self.dedups.clone());
        r.register("workqueue_retries", "Keys put back after a failure", self.retries.clone());
        r.register("workqueue_depth", "Keys that are ready", self.depth.clone());
        r.register(
            "workqueue_parked",
            "Keys that wait for the cache to pass their own writes",
            self.parked.clone(),
        );
        let help = "How long the oldest ready key has waited";
        r.register("workqueue_oldest_waiting_seconds", help, self.oldest.clone());
        r.register(
            "workqueue_queue_duration_seconds",
            "How long keys were ready before they ran",
            self.waited.clone(),
        );
        r.register("workqueue_work_duration_seconds", "How long reconciles took", self.worked.clone());
        r.register(
            "strata_time_to_converge_seconds",
            "From the change of a root's wish (its generation) until it was seen and ready",
            self.converged.clone(),
        );
        r.register("controller_runtime_active_workers", "Reconciles that run", self.running.clone());
        r.register("controller_runtime_reconcile", "Reconciles by result", self.reconciles.clone());
        r.register("strata_cache_objects", "Objects in the cache", self.objects.clone());
        r.register("leader_election_master_status", "Whether this process leads", self.leading.clone());
    }

    fn zero(&self) {
        for family in [&self.adds, &self.dedups, &self.retries] {
            drop(family.get_or_create(&[("name", self.name)]));
        }
        for family in [&self.waited, &self.worked, &self.converged] {
            drop(family.get_or_create(&[("name", self.name)]));
        }
        for family in [&self.depth, &self.parked] {
            drop(family.get_or_create(&[("name", self.name)]));
        }
        drop(self.oldest.get_or_create(&[("name", self.name)]));
        drop(self.running.get_or_create(&[("controller", self.name)]));
        drop(self.leading.get_or_create(&[("name", self.name)]));
        for ending in Ending::ALL {
            drop(self.reconciles.get_or_create(&self.ending(ending)));
        }
    }

    fn ending(&self, ending: Ending) -> Labels {
        vec![("controller", self.name.to_owned()), ("result", ending.as_str().to_owned())]
    }

    /// A job began after waiting.
    pub fn began(&self, waited: f64) {
        self.waited.get_or_create(&[("name", self.name)]).observe(waited);
    }

    /// A job ended.
    pub fn ended(&self, ending: Ending, seconds: f64) {
        self.worked.get_or_create(&[("name", self.name)]).observe(seconds);
        self.reconciles.get_or_create(&self.ending(ending)).inc();
    }

    /// A root became as it was wished.
    pub fn converged(&self, seconds: f64) {
        self.converged.get_or_create(&[("name", self.name)]).observe(seconds);
    }

    /// How many reconciles ended so.
    pub fn count(&self, ending: Ending) -> u64 {
        self.reconciles.get_or_create(&self.ending(ending)).get()
    }

    /// Whether the process leads.
    pub fn leads(&self, leads: bool) {
        self.leading.get_or_create(&[("name", self.name)]).set(i64::from(leads));
    }

    /// Takes over the queue's own counts; called when somebody looks.
    pub fn queue(&self, counts: Counts, oldest: f64) {
        let mut last = self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let name = [("name", self.name)];
        self.adds.get_or_create(&name).inc_by(counts.adds - last.adds);
        self.dedups.get_or_create(&name).inc_by(counts.dedups - last.dedups);
        self.retries.get_or_create(&name).inc_by(counts.retries - last.retries);
        self.depth.get_or_create(&name).set(counts.depth as i64);
        self.parked.get_or_create(&name).set(counts.parked as i64);
        self.running.get_or_create(&[("controller", self.name)]).set(counts.running as i64);
        self.oldest.get_or_create(&name).set(oldest);
        *last = counts;
    }

    /// How many objects of a type the cache holds.
    pub fn objects(&self, resource: &str, count: usize) {
        let labels = vec![("controller", self.name.to_owned()), ("resource", resource.to_owned())];
        self.objects.get_or_create(&labels).set(count as i64);
    }

    /// The exposition text (OpenMetrics).
    pub fn text(&self) -> String {
        let mut text = String::new();
        if let Err(error) = encode(&mut text, &self.registry) {
            tracing::error!(%error, "metrics cannot be written");
        }
        text
    }
}

/// The expositions of several controllers as one: each family once, with the samples of all.
pub fn together(texts: Vec<String>) -> String {
    let mut families: Vec<(String, String)> = Vec::new();
    for text in &texts {
        let mut place = 0;
        for line in text.lines().filter(|line| *line != END) {
            if let Some(name) = line.strip_prefix("# HELP ").and_then(|rest| rest.split(' ').next()) {
                let known = families.iter().position(|(family, _)| family == name);
                place = known.unwrap_or(families.len());
                if known.is_none() {
                    families.push((name.to_owned(), String::new()));
                }
            }
            let Some((_, lines)) = families.get_mut(place) else { continue };
            if !line.starts_with('#') || !lines.contains(line) {
                lines.push_str(line);
                lines.push('\n');
            }
        }
    }
    let mut all: String = families.into_iter().map(|(_, lines)| lines).collect();
    all.push_str(END);
    all.push('\n');
    all
}

/// How an exposition ends.
const END: &str = "# EOF";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_there_from_the_start_at_zero() {
        let metrics = Metrics::new("deployment");
        let text = metrics.text();
        for line in [
            "workqueue_adds_total{name=\"deployment\"} 0",
            "workqueue_depth{name=\"deployment\"} 0",
            "workqueue_retries_total{name=\"deployment\"} 0",
            "controller_runtime_reconcile_total{controller=\"deployment\",result=\"noop\"} 0",
            "leader_election_master_status{name=\"deployment\"} 0",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        metrics.queue(Counts { adds: 3, depth: 2, ..Counts::default() }, 0.5);
        metrics.queue(Counts { adds: 5, depth: 1, ..Counts::default() }, 0.5);
        let text = metrics.text();
        assert!(text.contains("workqueue_adds_total{name=\"deployment\"} 5"), "{text}");
        assert!(text.contains("workqueue_depth{name=\"deployment\"} 1"));
    }
}
