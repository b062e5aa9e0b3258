//! Addresses of networks, and URLs.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use ::cel::common::types::{STRING_TYPE, Type};
use ::cel::objects::{Key, Map, Opaque};
use ::cel::{DeclarationError, Env, ExecutionError, Value as Cel};
use http::Uri;

use super::{Arguments, fault, flag, give, global, member, number, opaque, own, text, words};

const IP: &str = "net.IP";
const CIDR: &str = "net.CIDR";
const URL: &str = "kubernetes.URL";

/// An address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Address(IpAddr);

/// A network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Network(IpAddr, u8);

/// A URL.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Url(Uri);

impl Opaque for Address {
    fn runtime_type_name(&self) -> &str {
        IP
    }
}

impl Opaque for Network {
    fn runtime_type_name(&self) -> &str {
        CIDR
    }
}

impl Opaque for Url {
    fn runtime_type_name(&self) -> &str {
        URL
    }
}

pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    addresses(env)?;
    networks(env)?;
    urls(env)
}

fn addresses(env: &mut Env) -> Result<(), DeclarationError> {
    let ip = || Type::new_opaque_type(IP);
    global(env, "isIP", vec![STRING_TYPE], |a| flag(text(&a, 0)?.parse::<IpAddr>().is_ok()))?;
    global(env, "ip", vec![STRING_TYPE], |a| opaque(address(text(&a, 0)?)?))?;
    global(env, "ip.isCanonical", vec![STRING_TYPE], |a| {
        let given = text(&a, 0)?;
        flag(address(given)?.0.to_string() == given)
    })?;
    global(env, "string", vec![ip()], |a| words(own::<Address>(&a, 0)?.0.to_string()))?;
    member(env, "family", ip(), vec![], |a| number(if own::<Address>(&a, 0)?.0.is_ipv4() { 4 } else { 6 }))?;
    member(env, "isUnspecified", ip(), vec![], |a| flag(own::<Address>(&a, 0)?.0.is_unspecified()))?;
    member(env, "isLoopback", ip(), vec![], |a| flag(own::<Address>(&a, 0)?.0.is_loopback()))?;
    member(env, "isLinkLocalMulticast", ip(), vec![], |a| {
        flag(is_local_multicast(own::<Address>(&a, 0)?.0))
    })?;
    member(env, "isLinkLocalUnicast", ip(), vec![], |a| flag(is_local_unicast(own::<Address>(&a, 0)?.0)))?;
    member(env, "isGlobalUnicast", ip(), vec![], |a| {
        let ip = own::<Address>(&a, 0)?.0;
        let broadcast = matches!(ip, IpAddr::V4(v4) if v4.is_broadcast());
        let special = ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() || is_local_unicast(ip);
        flag(!broadcast && !special)
    })
}

fn is_local_multicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => v4.octets()[..3] == [224, 0, 0],
        IpAddr::V6(v6) => v6.segments()[0] & 0xff0f == 0xff02,
    }
}

fn is_local_unicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.segments()[0] & 0xffc0 == 0xfe80,
    }
}

fn address(text: &str) -> Result<Address, ExecutionError> {
    text.parse().map(Address).map_err(|_| fault("ip", format!("IP Address '{text}' parse error")))
}

fn networks(env: &mut Env) -> Result<(), DeclarationError> {
    let (ip, cidr) = (|| Type::new_opaque_type(IP), || Type::new_opaque_type(CIDR));
    global(env, "isCIDR", vec![STRING_TYPE], |a| flag(network(text(&a, 0)?).is_ok()))?;
    global(env, "cidr", vec![STRING_TYPE], |a| opaque(network(text(&a, 0)?)?))?;
    global(env, "string", vec![cidr()], |a| {
        let Network(ip, bits) = own(&a, 0)?;
        words(format!("{ip}/{bits}"))
    })?;
    member(env, "ip", cidr(), vec![], |a| opaque(Address(own::<Network>(&a, 0)?.0)))?;
    member(env, "prefixLength", cidr(), vec![], |a| number(i64::from(own::<Network>(&a, 0)?.1)))?;
    member(env, "masked", cidr(), vec![], |a| {
        let Network(ip, bits) = own(&a, 0)?;
        opaque(Network(masked(ip, bits), bits))
    })?;
    member(env, "containsIP", cidr(), vec![ip()], |a| flag(holds(own(&a, 0)?, own::<Address>(&a, 1)?.0)))?;
    member(env, "containsIP", cidr(), vec![STRING_TYPE], |a| {
        flag(holds(own(&a, 0)?, address(text(&a, 1)?)?.0))
    })?;
    member(env, "containsCIDR", cidr(), vec![cidr()], |a| flag(covers(own(&a, 0)?, own(&a, 1)?)))?;
    member(env, "containsCIDR", cidr(), vec![STRING_TYPE], |a| {
        flag(covers(own(&a, 0)?, network(text(&a, 1)?)?))
    })
}

fn network(text: &str) -> Result<Network, ExecutionError> {
    let wrong = || fault("cidr", format!("network address parse error: '{text}' is no CIDR"));
    let (ip, bits) = text.split_once('/').ok_or_else(wrong)?;
    let (ip, bits): (IpAddr, u8) = (ip.parse().map_err(|_| wrong())?, bits.parse().map_err(|_| wrong())?);
    if bits > width(ip) { Err(wrong()) } else { Ok(Network(ip, bits)) }
}

fn width(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 32 } else { 128 }
}

fn masked(ip: IpAddr, bits: u8) -> IpAddr {
    match ip {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(u32::from(32 - bits.min(32))).unwrap_or(0);
            IpAddr::V4((u32::from(v4) & mask).into())
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(u32::from(128 - bits.min(128))).unwrap_or(0);
            IpAddr::V6((u128::from(v6) & mask).into())
        }
    }
}

fn holds(network: Network, ip: IpAddr) -> bool {
    width(network.0) == width(ip) && masked(ip, network.1) == masked(network.0, network.1)
}

fn covers(outer: Network, inner: Network) -> bool {
    inner.1 >= outer.1 && holds(outer, inner.0)
}

fn urls(env: &mut Env) -> Result<(), DeclarationError> {
    let url = || Type::new_opaque_type(URL);
    global(env, "isURL", vec![STRING_TYPE], |a| flag(parse(text(&a, 0)?).is_ok()))?;
    global(env, "url", vec![STRING_TYPE], |a| opaque(parse(text(&a, 0)?)?))?;
    member(env, "getScheme", url(), vec![], |a| {
        words(own::<Url>(&a, 0)?.0.scheme_str().unwrap_or_default())
    })?;
    member(env, "getHost", url(), vec![], |a| {
        let url = own::<Url>(&a, 0)?.0;
        let authority = url.authority().map_or("", |authority| authority.as_str());
        words(authority.rsplit('@').next().unwrap_or_default())
    })?;
    member(env, "getHostname", url(), vec![], |a| {
        let url = own::<Url>(&a, 0)?.0;
        words(url.host().unwrap_or_default().trim_matches(['[', ']']))
    })?;
    member(env, "getPort", url(), vec![], |a| {
        words(own::<Url>(&a, 0)?.0.port().map_or_else(String::new, |port| port.to_string()))
    })?;
    member(env, "getEscapedPath", url(), vec![], |a| words(path(&own(&a, 0)?)))?;
    member(env, "getQuery", url(), vec![], query)
}

/// An absolute URL, or an absolute path.
fn parse(text: &str) -> Result<Url, ExecutionError> {
    let wrong = || {
        fault(
            "url",
            format!(
                "URL parse error during conversion from string: parse \"{text}\": invalid URI for request"
            ),
        )
    };
    let uri: Uri = text.parse().map_err(|_| wrong())?;
    if uri.scheme().is_some() || text.starts_with('/') { Ok(Url(uri)) } else { Err(wrong()) }
}

/// The path as it was written: the library gives a slash where there is none.
fn path(url: &Url) -> String {
    url.0.path().to_owned()
}

fn query<'b, 'v>(arguments: Arguments<'b, 'v>) -> super::Outcome<'b, 'v> {
    let url: Url = own(&arguments, 0)?;
    let mut found: BTreeMap<String, Vec<Cel>> = BTreeMap::new();
    for pair in url.0.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        found.entry(name.to_owned()).or_default().push(Cel::String(Arc::new(value.to_owned())));
    }
    let members =
        found.into_iter().map(|(name, values)| (Key::String(Arc::new(name)), Cel::List(Arc::new(values))));
    give(Cel::Map(Map { map: Arc::new(members.collect()) }))
}
