//! The plan comes to rest at the wished temperature, from below and from above, and does nothing afterwards. No server.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use jiff::Timestamp;
use serde_json::json;
use strata_model::object::ObjectKey;
use strata_plan::controller::{Key, Next, View as _};
use strata_plan::world::World;
use thermostat::api::{Thermostat, resource};
use thermostat::plan::{STEP, Thermostats, UNHEATED};

/// Lets time pass from one due moment to the next until the controller asks for no more. Answers how many measurements
/// that took.
fn live(world: &mut World, mut now: Timestamp) -> usize {
    for turn in 0.. {
        assert!(turn < 1000, "it never comes to rest");
        match world.turn(&Thermostats, now, usize::MAX) {
            (0, Next::OnChange) => return turn,
            (_, Next::At(due)) => now = due,
            (_, Next::OnChange) => {}
        }
    }
    unreachable!("the loop returns")
}

#[test]
fn the_room_gets_to_its_temperature_and_stays_there() {
    let now: Timestamp = "2026-11-30T20:00:00Z".parse().unwrap();
    for wanted in [21.0, 12.3, UNHEATED] {
        let mut world = World::new();
        let wish = json!({"metadata": {"name": "bath", "namespace": "home"}, "spec": {"degrees": wanted}});
        world.create(&resource(), wish, now).unwrap();
        let turns = live(&mut world, now);
        assert!(turns >= ((wanted - UNHEATED).abs() / STEP) as usize, "{turns} turns to {wanted}");
        let key = Key::new(&resource(), ObjectKey::new("home", "bath"));
        let object = world.get(&key.resource, &key.object).unwrap();
        let status = object.decode::<Thermostat>().unwrap().status.unwrap();
        assert_eq!((status.degrees, status.heating), (wanted, false));
        assert!(world.plan(&Thermostats, &key, now).is_settled());
    }
}
