//! Endpoints and endpoint slices: the addresses behind services.

use jiff::Timestamp;
use serde_json::{Value, json};
use strata_model::addresses;
use strata_model::field::{FieldError, FieldPath};
use strata_model::names;

use super::rules::{AGE, Column, Faults, NAME, PLAIN, Rules, column};
use super::{check, meta, print};
use crate::value::{default, int, list, object, text};

/// Most endpoints that a row shows.
const SHOWN: usize = 3;
/// Most endpoints of a slice.
const MAX_ENDPOINTS: usize = 1000;
/// Most ports of a slice.
const MAX_PORTS: usize = 100;
/// Most addresses of one endpoint.
const MAX_ADDRESSES: usize = 100;
const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];

/// Rules of endpoints.
pub static ENDPOINTS: Rules = Rules {
    defaults: |endpoints| {
        let subsets = endpoints.get_mut("subsets").and_then(Value::as_array_mut).into_iter().flatten();
        for port in subsets.filter_map(|s| s.get_mut("ports").and_then(Value::as_array_mut)).flatten() {
            default(object(port), "protocol", "TCP");
        }
    },
    validate: validate_endpoints,
    columns: const { &[NAME, column("Endpoints", "Addresses and ports."), AGE] as &[Column] },
    row: |endpoints, now| {
        let mut all = Vec::new();
        for subset in list(endpoints, &["subsets"]) {
            let addresses = list(subset, &["addresses"]).iter().map(|a| text(a, &["ip"]));
            let ports = list(subset, &["ports"]);
            for ip in addresses {
                if ports.is_empty() {
                    all.push(ip.to_owned());
                }
                all.extend(ports.iter().map(|p| with_port(ip, int(p, &["port"]).unwrap_or(0))));
            }
        }
        vec![
            print::name(endpoints),
            print::or_none(&print::some(&all, SHOWN)),
            print::created(endpoints, now),
        ]
    },
    create_on_update: true,
    ..PLAIN
};

fn with_port(ip: &str, port: i64) -> String {
    if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }
}

fn validate_endpoints(endpoints: &Value, faults: &mut Faults) {
    for (index, subset) in list(endpoints, &["subsets"]).iter().enumerate() {
        let path = FieldPath::new("subsets").index(index);
        let places = ["addresses", "notReadyAddresses"];
        if places.iter().all(|place| list(subset, &[place]).is_empty()) {
            let detail = "must specify `addresses` or `notReadyAddresses`";
            faults.push(FieldError::required(path.clone(), detail));
        }
        for place in places {
            for (index, address) in list(subset, &[place]).iter().enumerate() {
                ip(text(address, &["ip"]), path.child(place).index(index).child("ip"), faults);
            }
        }
        let ports = list(subset, &["ports"]);
        for (index, port) in ports.iter().enumerate() {
            let path = path.child("ports").index(index);
            if ports.len() > 1 && text(port, &["name"]).is_empty() {
                faults.push(FieldError::required(path.child("name"), ""));
            }
            check::optional_name(port, "name", names::dns_label, &path, faults);
            check::port(int(port, &["port"]).unwrap_or(0), path.child("port"), faults);
            check::known(port, "protocol", PROTOCOLS, &path, faults);
        }
    }
}

fn ip(address: &str, path: FieldPath, faults: &mut Faults) {
    let Ok(parsed) = address.parse::<std::net::IpAddr>() else {
        faults.push(FieldError::invalid(path, address, check::NO_ADDRESS));
        return;
    };
    let local = match parsed {
        std::net::IpAddr::V4(v4) => v4.is_link_local(),
        std::net::IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    // Pods have addresses of this machine, beside its own.
    let pod = matches!(parsed, std::net::IpAddr::V4(v4) if addresses::is_of_pods(v4));
    let cases = [
        (parsed.is_unspecified(), format!("may not be unspecified ({address})")),
        (parsed.is_loopback() && !pod, "may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned()),
        (local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned()),
        (parsed.is_multicast(), "may not be in the multicast range (224.0.0.0/4, ff00::/8)".to_owned()),
    ];
    for (wrong, detail) in cases {
        if wrong {
            faults.push(FieldError::invalid(path.clone(), address, detail));
        }
    }
}

/// Rules of endpoint slices.
pub static ENDPOINT_SLICE: Rules = Rules {
    defaults: |slice| {
        for port in slice.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
            let port = object(port);
            default(port, "name", "");
            default(port, "protocol", "TCP");
        }
    },
    validate: validate_slice,
    validate_update: |new, old, faults| meta::immutable(new, old, &["addressType"], faults),
    columns: const {
        &[
            NAME,
            column("AddressType", "What its addresses are."),
            column("Ports", "Its ports."),
            column("Endpoints", "Its addresses."),
            AGE,
        ] as &[Column]
    },
    row: slice_row,
    ..PLAIN
};

fn validate_slice(slice: &Value, faults: &mut Faults) {
    let root = FieldPath::new("");
    check::known(slice, "addressType", &["FQDN", "IPv4", "IPv6"], &root, faults);
    let kind = text(slice, &["addressType"]);
    let endpoints = list(slice, &["endpoints"]);
    if endpoints.len() > MAX_ENDPOINTS {
        faults.push(FieldError::too_many(root.child("endpoints"), endpoints.len(), MAX_ENDPOINTS));
    }
    for (index, endpoint) in endpoints.iter().enumerate() {
        let path = root.child("endpoints").index(index);
        let addresses = list(endpoint, &["addresses"]);
        let place = path.child("addresses");
        if addresses.is_empty() {
            faults.push(FieldError::required(place.clone(), "must contain at least 1 address"));
        } else if addresses.len() > MAX_ADDRESSES {
            faults.push(FieldError::too_many(place.clone(), addresses.len(), MAX_ADDRESSES));
        }
        for (index, address) in addresses.iter().filter_map(Value::as_str).enumerate() {
            let place = place.index(index);
            let v6 = address.contains(':');
            match kind {
                "FQDN" => {
                    if let Some(fault) = names::dns_subdomain(address) {
                        faults.push(FieldError::invalid(place, address, fault));
                    }
                }
                "IPv4" if v6 => {
                    faults.push(FieldError::invalid(place, address, "must be a valid IPv4 address"))
                }
                "IPv6" if !v6 => {
                    faults.push(FieldError::invalid(place, address, "must be a valid IPv6 address"))
                }
                _ => ip(address, place, faults),
            }
        }
        check::optional_name(endpoint, "hostname", names::dns_label, &path, faults);
    }
    let ports = list(slice, &["ports"]);
    if ports.len() > MAX_PORTS {
        faults.push(FieldError::too_many(root.child("ports"), ports.len(), MAX_PORTS));
    }
    let mut seen = std::collections::BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = root.child("ports").index(index);
        let name = text(port, &["name"]);
        if !seen.insert(name) {
            faults.push(FieldError::duplicate(path.child("name"), name));
        }
        check::optional_name(port, "name", names::dns_label, &path, faults);
        check::known(port, "protocol", PROTOCOLS, &path, faults);
        if let Some(number) = int(port, &["port"]) {
            check::port(number, path.child("port"), faults);
        }
    }
}

fn slice_row(slice: &Value, now: Timestamp) -> Vec<Value> {
    let ports: Vec<String> = list(slice, &["ports"])
        .iter()
        .map(|port| match (int(port, &["port"]), text(port, &["name"])) {
            (Some(number), _) => number.to_string(),
            (None, "") => "*".to_owned(),
            (None, name) => name.to_owned(),
        })
        .collect();
    let addresses: Vec<String> = list(slice, &["endpoints"])
        .iter()
        .flat_map(|endpoint| list(endpoint, &["addresses"]))
        .map(|address| address.as_str().unwrap_or_default().to_owned())
        .collect();
    let shown = |all: &[String]| match all {
        [] => json!("<unset>"),
        all => json!(print::some(all, SHOWN)),
    };
    vec![
        print::name(slice),
        json!(text(slice, &["addressType"])),
        shown(&ports),
        shown(&addresses),
        print::created(slice, now),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_show_a_few_and_count_the_rest() {
        let addresses: Vec<Value> = (1..6).map(|i| json!({"ip": format!("10.0.0.{i}")})).collect();
        let endpoints = json!({"metadata": {"name": "e"}, "subsets": [{"addresses": addresses, "ports": [{"port": 80}]}]});
        let row = (ENDPOINTS.row)(&endpoints, Timestamp::UNIX_EPOCH);
        assert_eq!(row[1], "10.0.0.1:80,10.0.0.2:80,10.0.0.3:80 + 2 more...");
        assert_eq!((ENDPOINTS.row)(&json!({}), Timestamp::UNIX_EPOCH)[1], "<none>");
    }
}
