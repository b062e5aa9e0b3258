//! Approved requests get their certificate or hear why not; all go in time.

use serde_json::json;
use strata_model::object::ObjectKey;

use super::*;
use crate::testing::{all, at, both_ways, key, value};
use crate::world::World;

struct Signs;

impl Authority for Signs {
    fn sign(&self, wanted: &Wanted<'_>) -> Result<String, String> {
        if wanted.user == "odd" { Err("odd names".to_owned()) } else { Ok(format!("PEM of {}", wanted.user)) }
    }
}

fn signing() -> CertificateSigning {
    CertificateSigning { authority: Some(Arc::new(Signs)) }
}

fn named(name: &str) -> ObjectKey {
    ObjectKey::new("", key(name).name)
}

fn world() -> World {
    let mut world = World::new();
    let client = "kubernetes.io/kube-apiserver-client";
    for (name, signer, user, usages, condition) in [
        ("fine", client, "ann", json!(["client auth", "digital signature"]), "Approved"),
        ("open", client, "ann", json!(["client auth"]), ""),
        ("denied", client, "ann", json!(["client auth"]), "Denied"),
        ("other", "x.io/s", "ann", json!(["client auth"]), "Approved"),
        ("usage", client, "ann", json!(["client auth", "cert sign"]), "Approved"),
        ("odd", client, "odd", json!(["client auth"]), "Approved"),
    ] {
        let mut request = json!({"metadata": {"name": name}, "spec": {"signerName": signer, "username": user, "usages": usages, "request": "AAAA"}});
        if !condition.is_empty() {
            request["status"] = json!({"conditions": [{"type": condition, "status": "True", "lastUpdateTime": at(0).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()}]});
        }
        world.create(&CERTIFICATE_SIGNING_REQUEST, request, at(0)).unwrap();
    }
    world
}

#[test]
fn what_is_approved_is_signed_or_fails() {
    both_ways(&signing(), at(1), world, |world| {
        let of = |name: &str| value(world, &CERTIFICATE_SIGNING_REQUEST, &named(name))["status"].clone();
        assert_eq!(of("fine")["certificate"], STANDARD.encode("PEM of ann"));
        for name in ["open", "denied", "other"] {
            assert!(of(name)["certificate"].is_null(), "{name}");
        }
        for (name, why) in
            [("usage", "usage \"cert sign\" is not given by this signer"), ("odd", "odd names")]
        {
            let failed = &of(name)["conditions"][1];
            assert_eq!((&failed["type"], &failed["message"]), (&json!("Failed"), &json!(why)), "{name}");
        }
    });
}

#[test]
fn decided_ones_go_after_an_hour_and_all_others_after_a_day() {
    let mut world = world();
    world.settle(&CertificateSigning { authority: None }, at(3599));
    assert_eq!(all(&world, &CERTIFICATE_SIGNING_REQUEST).len(), 6);
    world.settle(&signing(), at(3601));
    assert_eq!(all(&world, &CERTIFICATE_SIGNING_REQUEST).len(), 1);
    world.settle(&signing(), at(24 * 3600 + 1));
    assert!(all(&world, &CERTIFICATE_SIGNING_REQUEST).is_empty());
}
