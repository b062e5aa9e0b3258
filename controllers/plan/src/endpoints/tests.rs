//! Scenarios of services, pods and endpoints. Each that matters runs with whole plans and with plans cut after every
//! write.

use serde_json::{Value, json};
use strata_model::object::ObjectKey;
use strata_model::resource::builtin::{ENDPOINT_SLICE, ENDPOINTS, POD, SERVICE};

use super::slices::MOST;
use super::*;
use crate::testing::{all, at, both_ways, key, names, pod, value};
use crate::world::World;

/// A service of namespace `n` that selects `app=web` and leads its port 80 to the pods' port `http`.
fn service() -> Value {
    json!({"metadata": {"name": "web", "namespace": "n", "labels": {"team": "a"}},
        "spec": {"selector": {"app": "web"}, "clusterIP": "10.96.0.9", "ipFamilies": ["IPv4"],
            "ports": [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": "http"}]}})
}

/// A pod with an address and a port `http`, ready or not.
fn serve(world: &mut World, name: &str, ready: bool) {
    let mut object = pod(name, json!({"app": "web"}));
    object["spec"]["containers"][0]["ports"] =
        json!([{"name": "http", "containerPort": 8080, "protocol": "TCP"}]);
    object["spec"]["nodeName"] = json!("n1");
    world.create(&POD, object, at(0)).unwrap();
    let number: u32 = name.rsplit('-').next().and_then(|n| n.parse().ok()).unwrap_or(0);
    let ip = format!("127.1.{}.{}", number / 200, number % 200 + 1);
    let status = json!({"status": {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
        "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}]}});
    world.patch(&POD, &key(name), &status).unwrap();
}

fn world(pods: usize) -> World {
    let mut world = World::new();
    world.create(&SERVICE, service(), at(0)).unwrap();
    for number in 0..pods {
        serve(&mut world, &format!("web-{number}"), true);
    }
    world
}

fn slices(world: &World) -> Vec<Value> {
    all(world, &ENDPOINT_SLICE).iter().map(|slice| slice.to_value().unwrap()).collect()
}

fn sizes(world: &World) -> Vec<usize> {
    let mut sizes: Vec<_> =
        slices(world).iter().map(|slice| slice["endpoints"].as_array().unwrap().len()).collect();
    sizes.sort_unstable();
    sizes
}

fn conditions(world: &World) -> Value {
    slices(world)[0]["endpoints"][0]["conditions"].clone()
}

fn subsets(world: &World) -> Value {
    value(world, &ENDPOINTS, &key("web"))["subsets"].clone()
}

#[test]
fn pods_of_a_service_are_listed_with_their_ports() {
    both_ways(
        &EndpointSlices,
        at(1),
        || world(2),
        |world| {
            let [slice] = &slices(world)[..] else { panic!("one slice") };
            assert_eq!(slice["addressType"], "IPv4");
            assert_eq!(slice["ports"], json!([{"name": "http", "port": 8080, "protocol": "TCP"}]));
            assert_eq!(
                slice["metadata"]["labels"],
                json!({"team": "a", "kubernetes.io/service-name": "web",
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"})
            );
            assert_eq!(slice["metadata"]["ownerReferences"][0]["kind"], "Service");
            let first = &slice["endpoints"][0];
            assert_eq!((&first["addresses"], &first["nodeName"]), (&json!(["127.1.0.1"]), &json!("n1")));
            assert_eq!(first["conditions"], json!({"ready": true, "serving": true, "terminating": false}));
            assert_eq!(first["targetRef"]["name"], "web-0");
        },
    );
    both_ways(
        &EndpointsObjects,
        at(1),
        || world(2),
        |world| {
            let subsets = subsets(world);
            let [subset] = &subsets.as_array().unwrap()[..] else { panic!("one subset") };
            assert_eq!(subset["ports"], json!([{"name": "http", "port": 8080, "protocol": "TCP"}]));
            assert_eq!(subset["addresses"].as_array().unwrap().len(), 2);
            assert!(subset["notReadyAddresses"].is_null());
        },
    );
}

#[test]
fn readiness_and_departure_show() {
    // ready, going, all are published → conditions of the slice, and the field of Endpoints (none: not listed)
    let cases = [
        (true, false, false, (true, true, false), Some("addresses")),
        (false, false, false, (false, false, false), Some("notReadyAddresses")),
        (true, true, false, (false, true, true), None),
        (false, true, false, (false, false, true), None),
        (false, false, true, (true, false, false), Some("addresses")),
        (true, true, true, (true, true, true), Some("addresses")),
    ];
    for (ready, going, publish, (is_ready, serving, terminating), field) in cases {
        let mut world = world(0);
        serve(&mut world, "web-0", ready);
        let spec = json!({"spec": {"publishNotReadyAddresses": publish}});
        world.patch(&SERVICE, &key("web"), &spec).unwrap();
        if going {
            world.delete(&POD, &key("web-0"), None, at(0)).unwrap();
        }
        world.settle(&EndpointSlices, at(1));
        world.settle(&EndpointsObjects, at(1));
        let expected = json!({"ready": is_ready, "serving": serving, "terminating": terminating});
        assert_eq!(conditions(&world), expected, "{ready} {going} {publish}");
        let listed = subsets(&world)[0].as_object().cloned().unwrap_or_default();
        let fields: Vec<&String> = listed.keys().filter(|name| *name != "ports").collect();
        assert_eq!(fields, field.iter().collect::<Vec<_>>(), "{ready} {going} {publish}");
    }
}

#[test]
fn ended_pods_and_those_without_an_address_are_not_listed() {
    let mut world = world(1);
    world.patch(&POD, &key("web-0"), &json!({"status": {"phase": "Succeeded"}})).unwrap();
    world.create(&POD, pod("waits", json!({"app": "web"})), at(0)).unwrap();
    world.settle(&EndpointSlices, at(1));
    world.settle(&EndpointsObjects, at(1));
    let [slice] = &slices(&world)[..] else { panic!("an empty slice says that somebody looked") };
    assert_eq!((&slice["endpoints"], &slice["ports"]), (&json!([]), &json!([])));
    assert!(subsets(&world).is_null());
    // And the empty one is used for the first that comes.
    serve(&mut world, "web-1", true);
    world.settle(&EndpointSlices, at(2));
    assert_eq!(sizes(&world), [1]);
    assert_eq!(slices(&world)[0]["metadata"]["name"], slice["metadata"]["name"]);
}

#[test]
fn slices_are_bounded_and_what_does_not_change_is_not_written() {
    let mut world = world(250);
    world.settle(&EndpointSlices, at(1));
    assert_eq!(sizes(&world), [50, MOST, MOST]);
    // One pod changes: one write.
    let unready = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
    world.patch(&POD, &key("web-7"), &unready).unwrap();
    let before = world.writes;
    world.settle(&EndpointSlices, at(2));
    assert_eq!(world.writes - before, 1);
    // New ones go where there is room for them, with one write too.
    serve(&mut world, "web-300", true);
    serve(&mut world, "web-301", true);
    let before = world.writes;
    world.settle(&EndpointSlices, at(3));
    assert_eq!((world.writes - before, sizes(&world)), (1, vec![52, MOST, MOST]));
    // One that goes leaves its slice, and all of them leave one that is empty.
    world.vanish(&POD, &key("web-300"));
    world.settle(&EndpointSlices, at(4));
    assert_eq!(sizes(&world), [51, MOST, MOST]);
    for name in names(&world, &POD) {
        world.vanish(&POD, &key(&name));
    }
    world.settle_in_part(&EndpointSlices, at(5));
    assert_eq!(sizes(&world), [0]);
}

#[test]
fn pods_with_other_numbers_for_a_named_port_are_apart() {
    let mut world = world(1);
    let mut other = pod("web-9", json!({"app": "web"}));
    other["spec"]["containers"][0]["ports"] = json!([{"name": "http", "containerPort": 9090}]);
    other["status"] = json!({"phase": "Running", "podIPs": [{"ip": "127.1.1.9"}]});
    world.create(&POD, other, at(0)).unwrap();
    world.settle_in_part(&EndpointSlices, at(1));
    world.settle(&EndpointsObjects, at(1));
    let ports: Vec<Value> = slices(&world).iter().map(|s| s["ports"][0]["port"].clone()).collect();
    assert!(ports.contains(&json!(8080)) && ports.contains(&json!(9090)), "{ports:?}");
    assert_eq!(subsets(&world).as_array().unwrap().len(), 2);
}

#[test]
fn a_changed_service_changes_what_there_is_and_makes_nothing_anew() {
    let mut world = world(3);
    world.settle(&EndpointSlices, at(1));
    world.settle(&EndpointsObjects, at(1));
    let name = names(&world, &ENDPOINT_SLICE);
    let change = json!({"metadata": {"labels": {"team": null, "tier": "x"}},
        "spec": {"ports": [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 7000, "appProtocol": "h2c"}]}});
    world.patch(&SERVICE, &key("web"), &change).unwrap();
    world.settle(&EndpointSlices, at(2));
    world.settle(&EndpointsObjects, at(2));
    assert_eq!(names(&world, &ENDPOINT_SLICE), name);
    let expected = json!({"name": "http", "port": 7000, "protocol": "TCP", "appProtocol": "h2c"});
    assert_eq!(slices(&world)[0]["ports"], json!([expected]));
    assert_eq!(subsets(&world)[0]["ports"], json!([expected]));
    let labels = &slices(&world)[0]["metadata"]["labels"];
    assert_eq!((&labels["team"], &labels["tier"]), (&Value::Null, &json!("x")));
}

#[test]
fn headless_pods_are_known_by_their_names() {
    let mut world = world(0);
    let headless = json!({"spec": {"clusterIP": "None", "ports": null}});
    world.patch(&SERVICE, &key("web"), &headless).unwrap();
    serve(&mut world, "web-0", true);
    let named = json!({"spec": {"hostname": "web-0", "subdomain": "web"}});
    world.patch(&POD, &key("web-0"), &named).unwrap();
    world.settle(&EndpointSlices, at(1));
    world.settle(&EndpointsObjects, at(1));
    let slice = &slices(&world)[0];
    assert_eq!(slice["endpoints"][0]["hostname"], "web-0");
    assert_eq!(slice["metadata"]["labels"]["service.kubernetes.io/headless"], "");
    assert_eq!(subsets(&world)[0]["addresses"][0]["hostname"], "web-0");
    assert!(subsets(&world)[0]["ports"].is_null());
}

#[test]
fn what_others_write_stays_and_what_we_wrote_goes_with_the_service() {
    let mut world = world(1);
    let theirs = json!({"metadata": {"name": "theirs", "namespace": "n", "labels": {"kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "somebody"}}, "addressType": "IPv4", "endpoints": []});
    world.create(&ENDPOINT_SLICE, theirs, at(0)).unwrap();
    world.settle(&EndpointSlices, at(1));
    world.settle(&EndpointsObjects, at(1));
    assert_eq!(slices(&world).len(), 2);
    let custom = json!({"metadata": {"name": "custom", "namespace": "n"}, "subsets": [{"addresses": [{"ip": "10.0.0.1"}]}]});
    world.create(&ENDPOINTS, custom, at(1)).unwrap();
    world.vanish(&SERVICE, &key("web"));
    world.settle(&EndpointSlices, at(2));
    world.settle(&EndpointsObjects, at(2));
    assert_eq!(names(&world, &ENDPOINTS), ["custom"]);
}

#[test]
fn a_service_without_a_selector_is_left_to_people() {
    for change in [json!({"spec": {"selector": null}}), json!({"spec": {"type": "ExternalName"}})] {
        let mut world = world(1);
        world.patch(&SERVICE, &key("web"), &change).unwrap();
        world.settle(&EndpointSlices, at(1));
        world.settle(&EndpointsObjects, at(1));
        assert!(slices(&world).is_empty() && names(&world, &ENDPOINTS).is_empty());
    }
}

#[test]
fn endpoints_that_people_write_are_shown_as_slices() {
    let mut world = World::new();
    let mut by_hand = service();
    by_hand["spec"]["selector"] = Value::Null;
    world.create(&SERVICE, by_hand, at(0)).unwrap();
    let endpoints = json!({"metadata": {"name": "web", "namespace": "n"}, "subsets": [{
        "addresses": [{"ip": "10.1.0.1"}, {"ip": "fd00::1"}], "notReadyAddresses": [{"ip": "10.1.0.2"}],
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}]}]});
    world.create(&ENDPOINTS, endpoints, at(0)).unwrap();
    world.settle_in_part(&Mirrors, at(1));
    assert_eq!(sizes(&world), [1, 2]);
    let families: Vec<Value> = slices(&world).iter().map(|s| s["addressType"].clone()).collect();
    assert!(families.contains(&json!("IPv4")) && families.contains(&json!("IPv6")));
    // No controller of pods touches them, and they go where the service selects by itself.
    world.settle(&EndpointSlices, at(2));
    assert_eq!(slices(&world).len(), 2);
    world.patch(&SERVICE, &key("web"), &json!({"spec": {"selector": {"app": "web"}}})).unwrap();
    world.settle(&Mirrors, at(3));
    assert!(slices(&world).is_empty());
}

#[test]
fn more_than_a_thousand_addresses_are_cut_and_it_is_said() {
    let mut world = world(1001);
    world.settle(&EndpointsObjects, at(1));
    let whole = value(&world, &ENDPOINTS, &ObjectKey::new("n", "web"));
    assert_eq!(whole["subsets"][0]["addresses"].as_array().unwrap().len(), 1000);
    assert_eq!(whole["metadata"]["annotations"]["endpoints.kubernetes.io/over-capacity"], "truncated");
}
