//! The addresses and ports of services, which no two of them share: chosen here, reserved with the write.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use serde_json::{Map, Value, json};
use strata_model::field::{FieldError, FieldPath};

use super::rules::{Around, Faults, Unsettled};
use crate::value::{at, child, default, flag, int, list, list_mut, object, text};

/// First address of the range of services: 10.96.0.0/16.
const FIRST: u32 = u32::from_be_bytes([10, 96, 0, 0]);
/// Bits of an address within the range.
const BITS: u32 = 16;
/// Addresses at the lower end that are given only when the rest is full: people pick from them.
const PICKED: u32 = 256;
/// First and last port that is opened on every node.
const PORTS: (u32, u32) = (30_000, 32_767);
/// Ports at the lower end that are given only when the rest is full.
const PICKED_PORTS: u32 = 86;
/// The address of a service that has none on purpose.
pub const NONE: &str = "None";

/// Whether services of a type have an address within the platform.
pub fn has_address(service: &Value) -> bool {
    text(service, &["spec", "type"]) != "ExternalName"
}

/// Whether services of a type open ports on nodes.
pub fn opens_ports(service: &Value) -> bool {
    matches!(text(service, &["spec", "type"]), "NodePort" | "LoadBalancer")
}

/// What tells a port of a service from its others: protocol and number.
pub fn place(port: &Value) -> (String, i64) {
    (text(port, &["protocol"]).to_owned(), int(port, &["port"]).unwrap_or(0))
}

/// Gives a service its address and its ports on nodes.
pub fn settle(service: &mut Value, old: Option<&Value>, around: &dyn Around) -> Result<(), Unsettled> {
    let mut faults = Vec::new();
    if has_address(service) {
        families(service, &mut faults);
        give_address(service, old, around, &mut faults);
    }
    if opens_ports(service) {
        give_ports(service, old, around, &mut faults);
    }
    if faults.is_empty() { Ok(()) } else { Err(Unsettled::Faults(faults)) }
}

fn families(service: &mut Value, faults: &mut Faults) {
    let path = FieldPath::new("spec");
    // Without pods of its own, a service without an address may be of both families.
    let open = text(service, &["spec", "clusterIP"]) == NONE
        && at(service, &["spec", "selector"]).and_then(Value::as_object).is_none_or(Map::is_empty);
    let spec = child(service, "spec");
    if open {
        default(spec, "ipFamilyPolicy", "RequireDualStack");
        let both = spec["ipFamilyPolicy"] != "SingleStack";
        default(spec, "ipFamilies", if both { json!(["IPv4", "IPv6"]) } else { json!(["IPv4"]) });
        return;
    }
    default(spec, "ipFamilyPolicy", "SingleStack");
    default(spec, "ipFamilies", json!(["IPv4"]));
    let policy = spec["ipFamilyPolicy"].as_str().unwrap_or_default();
    if policy == "RequireDualStack" {
        let detail = "this cluster is not configured for dual-stack services";
        faults.push(FieldError::invalid(path.child("ipFamilyPolicy"), policy, detail));
    } else if !matches!(policy, "SingleStack" | "PreferDualStack") {
        let known = &["SingleStack", "PreferDualStack", "RequireDualStack"];
        faults.push(FieldError::not_supported(path.child("ipFamilyPolicy"), policy, known));
    }
    for (index, family) in spec["ipFamilies"].as_array().into_iter().flatten().enumerate() {
        if family != "IPv4" {
            let detail = "not configured on this cluster";
            faults.push(FieldError::invalid(path.child("ipFamilies").index(index), family, detail));
        }
    }
}

fn address_name(address: &str) -> String {
    format!("clusterips/{address}")
}

fn port_name(port: i64) -> String {
    format!("nodeports/{port}")
}

fn give_address(service: &mut Value, old: Option<&Value>, around: &dyn Around, faults: &mut Faults) {
    let wanted = text(service, &["spec", "clusterIP"]).to_owned();
    let held = old.map_or("", |old| text(old, &["spec", "clusterIP"]));
    let path = FieldPath::new("spec").child("clusterIPs");
    let address = match wanted.as_str() {
        "" => {
            let count = 1 << BITS;
            // Neither the first address of the range nor its last is given.
            let free = pick(PICKED, count - 1, 1, around, |offset| {
                !around.taken(&address_name(&Ipv4Addr::from(FIRST + offset).to_string()))
            });
            let Some(offset) = free else {
                let detail = "failed to allocate a serviceIP: range is full";
                faults.push(FieldError::invalid(path, json!([]), detail));
                return;
            };
            Ipv4Addr::from(FIRST + offset).to_string()
        }
        NONE => NONE.to_owned(),
        wanted if wanted == held => wanted.to_owned(),
        wanted => {
            let fault = match wanted.parse::<IpAddr>() {
                Ok(IpAddr::V4(v4)) if (u32::from(v4) ^ FIRST) >> BITS == 0 => {
                    around.taken(&address_name(wanted)).then(|| "provided IP is already allocated".to_owned())
                }
                _ => {
                    let range = format!("{}/{}", Ipv4Addr::from(FIRST), 32 - BITS);
                    Some(format!(
                        "the provided IP ({wanted}) is not in the valid range. The range of valid IPs is {range}"
                    ))
                }
            };
            if let Some(fault) = fault {
                let detail = format!("failed to allocate IP {wanted}: {fault}");
                faults.push(FieldError::invalid(path, json!([wanted]), detail));
            }
            wanted.to_owned()
        }
    };
    let spec = child(service, "spec");
    spec.insert("clusterIPs".to_owned(), json!([address]));
    spec.insert("clusterIP".to_owned(), json!(address));
}

/// Why a port that a service asks for cannot be its own, if so.
fn port_fault(port: i64, around: &dyn Around) -> Option<String> {
    if !(i64::from(PORTS.0)..=i64::from(PORTS.1)).contains(&port) {
        let range = format!("{}-{}", PORTS.0, PORTS.1);
        return Some(format!("provided port is not in the valid range. The range of valid ports is {range}"));
    }
    around.taken(&port_name(port)).then(|| "provided port is already allocated".to_owned())
}

fn give_ports(service: &mut Value, old: Option<&Value>, around: &dyn Around, faults: &mut Faults) {
    let held: BTreeSet<i64> = old.map(node_ports).unwrap_or_default();
    let mut own = node_ports(service);
    let give = text(service, &["spec", "type"]) == "NodePort"
        || flag(service, &["spec", "allocateLoadBalancerNodePorts"]);
    let local = text(service, &["spec", "type"]) == "LoadBalancer"
        && text(service, &["spec", "externalTrafficPolicy"]) == "Local";
    let path = FieldPath::new("spec").child("ports");
    // One number serves all protocols of a port.
    let mut numbers: BTreeMap<i64, (i64, BTreeSet<String>)> = BTreeMap::new();
    let free = |own: &mut BTreeSet<i64>| {
        let found = pick(PORTS.0 + PICKED_PORTS, PORTS.1 + 1, PORTS.0, around, |port| {
            let port = i64::from(port);
            !own.contains(&port) && !around.taken(&port_name(port))
        });
        own.extend(found.map(i64::from));
        found
    };
    for (index, port) in list_mut(service, &["spec", "ports"]).into_iter().flatten().enumerate() {
        let (protocol, number) = place(port);
        let path = path.index(index).child("nodePort");
        let given = int(port, &["nodePort"]).unwrap_or(0);
        if given != 0 {
            let fault = (!held.contains(&given)).then(|| port_fault(given, around)).flatten();
            if let Some(fault) = fault {
                faults.push(FieldError::invalid(path, given, fault));
            }
            numbers.entry(number).or_insert((given, BTreeSet::new())).1.insert(protocol);
            continue;
        }
        if !give {
            continue;
        }
        let shared = numbers.get_mut(&number).filter(|(_, protocols)| !protocols.contains(&protocol));
        let chosen = match shared {
            Some((chosen, protocols)) => {
                protocols.insert(protocol);
                Some(*chosen)
            }
            None => free(&mut own).map(i64::from).inspect(|chosen| {
                numbers.insert(number, (*chosen, BTreeSet::from([protocol])));
            }),
        };
        match chosen {
            Some(chosen) => drop(object(port).insert("nodePort".to_owned(), json!(chosen))),
            None => faults.push(FieldError::invalid(path, 0, "failed to allocate a nodePort: range is full")),
        }
    }
    if local
        && int(service, &["spec", "healthCheckNodePort"]).unwrap_or(0) == 0
        && let Some(port) = free(&mut own)
    {
        child(service, "spec").insert("healthCheckNodePort".to_owned(), json!(port));
    }
}

/// A free number from `picked` up to before `end`, from a random place on; else one from `first` up to before `picked`.
fn pick(picked: u32, end: u32, first: u32, around: &dyn Around, free: impl Fn(u32) -> bool) -> Option<u32> {
    let width = end - picked;
    let start = around.below(width);
    (0..width).map(|step| picked + (start + step) % width).chain(first..picked).find(|number| free(*number))
}

fn node_ports(service: &Value) -> BTreeSet<i64> {
    let ports = list(service, &["spec", "ports"]).iter().filter_map(|port| int(port, &["nodePort"]));
    ports.chain(int(service, &["spec", "healthCheckNodePort"])).filter(|port| *port != 0).collect()
}

/// The address and the ports that a service holds, as names of reservations.
pub fn reserves(service: &Value) -> Vec<String> {
    let address = text(service, &["spec", "clusterIP"]);
    let address = (!matches!(address, "" | NONE)).then(|| address_name(address));
    address.into_iter().chain(node_ports(service).into_iter().map(port_name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authn::User;
    use crate::rbac::policy::Policy;
    use strata_model::resource::GroupResource;

    struct World(BTreeSet<String>, User, Policy);

    impl Around for World {
        fn get(&self, _: &GroupResource, _: &str, _: &str) -> Option<Value> {
            None
        }
        fn all(&self, _: &GroupResource) -> Vec<Value> {
            Vec::new()
        }
        fn taken(&self, name: &str) -> bool {
            self.0.contains(name)
        }
        fn below(&self, _: u32) -> u32 {
            0
        }
        fn user(&self) -> &User {
            &self.1
        }
        fn policy(&self) -> &Policy {
            &self.2
        }
    }

    fn world(taken: &[&str]) -> World {
        World(taken.iter().map(|name| (*name).to_owned()).collect(), User::anonymous(), Policy::default())
    }

    #[test]
    fn free_addresses_and_ports_are_given_and_taken_ones_refused() {
        let world = world(&["clusterips/10.96.1.0", "nodeports/30086", "nodeports/31000"]);
        let mut service = json!({"spec": {"type": "NodePort", "selector": {"a": "b"}, "ports": [
            {"port": 53, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}, {"port": 80, "protocol": "TCP", "nodePort": 31000}]}});
        let Err(Unsettled::Faults(faults)) = settle(&mut service, None, &world) else {
            panic!("31000 is taken")
        };
        assert_eq!(
            faults[0].to_string(),
            "spec.ports[2].nodePort: Invalid value: 31000: provided port is already allocated"
        );
        assert_eq!(service["spec"]["clusterIP"], "10.96.1.1");
        assert_eq!(service["spec"]["ports"][0]["nodePort"], 30087);
        assert_eq!(service["spec"]["ports"][1]["nodePort"], 30087, "protocols share a number");
        service["spec"]["ports"][2]["nodePort"] = json!(80);
        service["spec"]["clusterIP"] = json!("10.97.0.1");
        let Err(Unsettled::Faults(faults)) = settle(&mut service, None, &world) else {
            panic!("out of range")
        };
        assert!(faults[0].to_string().contains("The range of valid IPs is 10.96.0.0/16"), "{}", faults[0]);
        assert!(faults[1].to_string().contains("The range of valid ports is 30000-32767"), "{}", faults[1]);
    }

    #[test]
    fn a_service_keeps_what_it_holds() {
        let mut service = json!({"spec": {"clusterIP": "10.96.0.9", "type": "NodePort", "selector": {"a": "b"},
            "ports": [{"port": 80, "protocol": "TCP", "nodePort": 30000}]}});
        let old = service.clone();
        let world = world(&["clusterips/10.96.0.9", "nodeports/30000"]);
        assert!(settle(&mut service, Some(&old), &world).is_ok());
        assert_eq!(reserves(&service), ["clusterips/10.96.0.9", "nodeports/30000"]);
        let mut headless = json!({"spec": {"clusterIP": "None", "type": "ClusterIP"}});
        assert!(settle(&mut headless, None, &world).is_ok());
        assert_eq!(headless["spec"]["ipFamilies"], json!(["IPv4", "IPv6"]));
        assert!(reserves(&headless).is_empty());
    }
}
