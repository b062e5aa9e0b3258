//! The addresses of pods. All of 127.0.0.0/8 leads to the machine itself, so each pod gets one of its own there: replicas
//! may listen at the same port, and an endpoint means one of them. Knows neither sockets nor nodes.

use std::net::Ipv4Addr;

/// Values of the second and the last byte: neither 0 nor 255, so that no address is the machine's own 127.0.0.1 or that
/// of a network or a broadcast.
const INNER: u64 = 254;

/// The address of the pod with this uid: always the same, so nobody has to remember it. Two of a hundred pods share one
/// once in three thousand times, and then mind it only if they listen at the same port.
pub fn of_pod(uid: &str) -> Ipv4Addr {
    // FNV-1a over 64 bits: the upper half is mixed well enough for what is below it.
    let hash = uid.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let place = (hash ^ (hash >> 32)) % (INNER * 256 * INNER);
    let byte = |value: u64| u8::try_from(value % 256).unwrap_or_default();
    let (last, rest) = (place % INNER, place / INNER);
    Ipv4Addr::new(127, byte(rest / 256 + 1), byte(rest), byte(last + 1))
}

/// Whether an address is one that pods get: beyond 127.0.0.0/16, which is the machine's own.
pub fn is_of_pods(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    first == 127 && second != 0
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_pod_has_an_address_of_its_own_for_good() {
        let uids = (0..100).map(|n| format!("6b1f2c1e-0000-4000-8000-{n:012}"));
        let all: BTreeSet<Ipv4Addr> = uids.map(|uid| of_pod(&uid)).collect();
        assert_eq!(all.len(), 100);
        for address in &all {
            let [_, second, _, last] = address.octets();
            assert!(is_of_pods(*address) && second != 255 && last != 0 && last != 255, "{address}");
        }
        assert_eq!(of_pod("a"), of_pod("a"));
        assert!(!is_of_pods(Ipv4Addr::LOCALHOST) && !is_of_pods(Ipv4Addr::new(10, 1, 2, 3)));
    }
}
