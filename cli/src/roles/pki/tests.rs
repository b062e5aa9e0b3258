//! Tests of the certificates.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

use super::leaf::{Authority, RENEW_BEFORE, Unfit};
use super::leaf::{Leaf, San, Use};
use super::store::Pki;

fn now() -> Timestamp {
    "2026-11-30T20:00:00Z".parse().unwrap()
}

fn server() -> Leaf {
    Leaf {
        file: "apiserver".to_owned(),
        user: "strata-apiserver".to_owned(),
        group: None,
        usage: Use::Server,
        sans: BTreeSet::from([
            San::Name("localhost".to_owned()),
            San::Address("127.0.0.1".parse().unwrap()),
            San::Address("::1".parse().unwrap()),
        ]),
    }
}

fn client() -> Leaf {
    Leaf {
        file: "admin".to_owned(),
        user: "strata-admin".to_owned(),
        group: Some("system:masters".to_owned()),
        usage: Use::Client,
        sans: BTreeSet::new(),
    }
}

#[test]
fn a_fresh_certificate_serves_until_a_month_before_its_end() {
    let (authority, _) = Authority::create(now()).unwrap();
    for leaf in [server(), client()] {
        let pair = authority.issue(&leaf, now()).unwrap();
        assert_eq!(authority.judge(&leaf, &pair, now()), None);
        let end = now() + Duration::from_secs(365 * 24 * 3600);
        assert_eq!(authority.judge(&leaf, &pair, end - RENEW_BEFORE), None);
        let late = end - RENEW_BEFORE + Duration::from_secs(1);
        assert_eq!(authority.judge(&leaf, &pair, late), Some(Unfit::Ending));
        let before = now() - Duration::from_secs(7200);
        assert_eq!(authority.judge(&leaf, &pair, before), Some(Unfit::Ending));
    }
}

#[test]
fn other_names_other_authorities_and_rubbish_are_seen() {
    let (authority, _) = Authority::create(now()).unwrap();
    let (other, _) = Authority::create(now()).unwrap();
    let pair = authority.issue(&server(), now()).unwrap();
    assert_eq!(other.judge(&server(), &pair, now()), Some(Unfit::OtherAuthority));
    let mut more = server();
    more.sans.insert(San::Name("example".to_owned()));
    assert_eq!(authority.judge(&more, &pair, now()), Some(Unfit::OtherNames));
    assert_eq!(authority.judge(&client(), &pair, now()), Some(Unfit::OtherNames));
    let mut swapped = pair.clone();
    swapped.key = authority.issue(&server(), now()).unwrap().key;
    assert_eq!(authority.judge(&server(), &swapped, now()), Some(Unfit::Unreadable));
    swapped.certificate = "x".to_owned();
    assert_eq!(authority.judge(&server(), &swapped, now()), Some(Unfit::Unreadable));
}

#[test]
fn a_directory_keeps_its_certificates_until_they_end() {
    let dir = tempfile::tempdir().unwrap();
    let pki = Pki::open(dir.path(), now()).unwrap();
    let first = pki.ensure(&server(), now()).unwrap();
    pki.ensure_key("sa").unwrap();
    let key = std::fs::read(dir.path().join("sa.key")).unwrap();

    let again = Pki::open(dir.path(), now()).unwrap();
    assert_eq!(again.authority(), pki.authority());
    assert_eq!(again.ensure(&server(), now()).unwrap().certificate, first.certificate);
    again.ensure_key("sa").unwrap();
    assert_eq!(std::fs::read(dir.path().join("sa.key")).unwrap(), key);

    let next_year = now() + Duration::from_secs(340 * 24 * 3600);
    let later = Pki::open(dir.path(), next_year).unwrap();
    assert_eq!(later.authority(), pki.authority());
    assert_ne!(later.ensure(&server(), next_year).unwrap().certificate, first.certificate);

    std::fs::remove_file(dir.path().join("ca.key")).unwrap();
    assert!(Pki::open(dir.path(), now()).is_err());
}
