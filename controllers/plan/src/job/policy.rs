//! The pod failure policy: what a failed pod means to its job, by exit codes and conditions. The first rule that matches
//! decides; where none does, the failure counts.

use k8s_openapi::api::batch::v1::{PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyRule};

use super::observed::Work;
use crate::pods::PodRef;
use crate::pods::body::ContainerStatus;

/// What a failure means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// It counts towards the limit.
    Counts,
    /// It is as if the pod had never been.
    Ignored,
    /// The job fails at once.
    FailsJob(String),
    /// The pod's index fails at once.
    FailsIndex,
}

/// What the failure of a pod means.
pub fn meaning(work: &Work, pod: &PodRef) -> Meaning {
    let rules = work.spec().and_then(|s| s.pod_failure_policy.as_ref()).map(|p| p.rules.as_slice());
    for (number, rule) in rules.unwrap_or_default().iter().enumerate() {
        let Some(why) = matched(rule, pod) else { continue };
        return match rule.action.as_str() {
            "Ignore" => Meaning::Ignored,
            "FailJob" => Meaning::FailsJob(format!("{why} matching FailJob rule at index {number}")),
            "FailIndex" => Meaning::FailsIndex,
            _ => Meaning::Counts,
        };
    }
    Meaning::Counts
}

/// Why a rule matches a pod, if it does.
fn matched(rule: &PodFailurePolicyRule, pod: &PodRef) -> Option<String> {
    let key = pod.object().key();
    if let Some(codes) = &rule.on_exit_codes {
        let (name, code) = exits(pod).find(|(name, code)| exit_matches(codes, name, *code))?;
        return Some(format!("Container {name} for pod {key} failed with exit code {code}"));
    }
    let conditions = pod.status.as_ref().and_then(|s| s.conditions.as_ref());
    for pattern in rule.on_pod_conditions.iter().flatten() {
        let mut all = conditions.into_iter().flatten();
        if all.any(|c| c.type_ == pattern.type_ && c.status == pattern.status) {
            return Some(format!("Pod {key} has condition {}", pattern.type_));
        }
    }
    None
}

/// Exit codes of containers that ended.
fn exits(pod: &PodRef) -> impl Iterator<Item = (&str, i32)> {
    let status = pod.status.as_ref();
    let lists = status.into_iter().flat_map(|s| [&s.container_statuses, &s.init_container_statuses]);
    lists.flatten().flatten().filter_map(|c: &ContainerStatus| {
        let ended = c.state.as_ref()?.terminated.as_ref()?;
        Some((c.name.as_str(), ended.exit_code))
    })
}

fn exit_matches(wanted: &PodFailurePolicyOnExitCodesRequirement, name: &str, code: i32) -> bool {
    // A container that ended well is no failure, whatever the operator says.
    if code == 0 || wanted.container_name.as_deref().is_some_and(|only| only != name) {
        return false;
    }
    wanted.values.contains(&code) == (wanted.operator == "In")
}
