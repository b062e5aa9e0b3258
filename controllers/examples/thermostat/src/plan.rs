//! What the controller does about a Thermostat: one step towards the wish each second, and nothing once they agree.
//! Pure: the time comes in, and a plan goes out.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use strata_plan::controller::{Controller, Key, MapTo, ObserveError, Plan, Target, View, Watched};
use strata_plan::typed::Typed;

use crate::api::{Thermostat, resource};

/// How much warmer or colder a room gets between two measurements, in degrees.
pub const STEP: f64 = 0.5;
/// Between two measurements.
pub const EVERY: SignedDuration = SignedDuration::from_secs(1);
/// How warm a room is that nobody has measured.
pub const UNHEATED: f64 = 17.0;

/// Holds rooms at their temperature.
pub struct Thermostats;

impl Controller for Thermostats {
    type Observed = Typed<Thermostat>;

    fn name(&self) -> &'static str {
        "thermostat"
    }

    fn watches(&self) -> Vec<Watched> {
        vec![Watched::all(&resource(), MapTo::Itself)]
    }

    fn observe(&self, view: &dyn View, key: &Key) -> Result<Option<Self::Observed>, ObserveError> {
        let found = view.get(&key.resource, &key.object);
        found.map(Typed::new).transpose().map_err(ObserveError::at(key))
    }

    fn plan(&self, thermostat: &Self::Observed, now: Timestamp) -> Plan {
        let mut plan = Plan::settled();
        let wanted = thermostat.spec.degrees;
        let status = thermostat.status.clone().unwrap_or_default();
        let measured: Option<Timestamp> = status.measured_at.parse().ok();
        let actual = if measured.is_some() { status.degrees } else { UNHEATED };
        let generation = thermostat.object().meta().generation;
        if measured.is_some()
            && actual == wanted
            && !status.heating
            && status.observed_generation == generation
        {
            return plan;
        }
        let due = measured.map_or(now, |at| at + EVERY);
        if now < due {
            plan.note("Measuring", format!("it is {actual} degrees, and should be {wanted}"));
            plan.next = plan.next.or_at(due);
            return plan;
        }
        let degrees = actual + (wanted - actual).clamp(-STEP, STEP);
        let status = json!({"degrees": degrees, "heating": degrees < wanted, "observedGeneration": generation,
            "measuredAt": now.to_string()});
        let target = Target::of(&resource(), thermostat.object());
        plan.actions.push(strata_plan::controller::Action::Status { target, status });
        plan.next = plan.next.or_at(now + EVERY);
        plan
    }
}
