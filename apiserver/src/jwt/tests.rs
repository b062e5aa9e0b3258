//! Tokens made, checked, forged and outlived; keys of both kinds.

use super::claims::{Binding, Claims, Issuer, Named, TokenError};
use super::keys::{KeyError, SigningKey, read_public};
use crate::authn::service_account_name;

fn pem() -> (String, String) {
    let key = rcgen::KeyPair::generate().unwrap();
    (key.serialize_pem(), key.public_key_pem())
}

fn issuer(private: &str) -> Issuer {
    Issuer::new("https://i".to_owned(), Some(SigningKey::read(private).unwrap()), Vec::new())
}

fn claims() -> Claims {
    Claims {
        aud: vec!["https://i".to_owned(), "x".to_owned()],
        exp: 1_000,
        iat: 100,
        iss: "https://i".to_owned(),
        jti: "id".to_owned(),
        binding: Binding {
            namespace: "n".to_owned(),
            serviceaccount: Named { name: "s".to_owned(), uid: "u".to_owned() },
            pod: Some(Named { name: "p".to_owned(), uid: "pu".to_owned() }),
            secret: None,
            node: None,
        },
        nbf: 100,
        sub: service_account_name("n", "s"),
    }
}

#[test]
fn a_token_counts_for_its_audiences_within_its_time_and_by_its_key() {
    let (private, public) = pem();
    let issuer = issuer(&private);
    let token = issuer.sign(&claims()).unwrap().unwrap();
    let audience = |name: &str| vec![name.to_owned()];
    assert_eq!(issuer.check(&token, &audience("x"), 500), Ok(claims()));
    assert_eq!(issuer.check(&token, &audience("y"), 500), Err(TokenError::Audience));
    assert_eq!(issuer.check(&token, &audience("x"), 2_000), Err(TokenError::Time));
    assert_eq!(issuer.check(&token, &audience("x"), 10), Err(TokenError::Time));
    let user = claims().user();
    assert_eq!(user.name, "system:serviceaccount:n:s");
    assert_eq!(user.groups, ["system:serviceaccounts", "system:serviceaccounts:n", "system:authenticated"]);
    assert_eq!(user.extra["authentication.kubernetes.io/pod-uid"], ["pu"]);

    let checking = Issuer::new("https://i".to_owned(), None, read_public(&public).unwrap());
    assert_eq!(checking.check(&token, &audience("x"), 500), Ok(claims()));
    assert_eq!(checking.sign(&claims()).unwrap(), None);
    assert_eq!(checking.published(), issuer.published());

    let other = self::issuer(&pem().0);
    assert_eq!(other.check(&token, &audience("x"), 500), Err(TokenError::Signature));
    let (head, signature) = token.rsplit_once('.').unwrap();
    let (header, _) = head.split_once('.').unwrap();
    let forged = other.sign(&Claims { sub: service_account_name("n", "boss"), ..claims() }).unwrap().unwrap();
    let body = forged.split('.').nth(1).unwrap();
    assert_eq!(
        issuer.check(&format!("{header}.{body}.{signature}"), &audience("x"), 500),
        Err(TokenError::Signature)
    );
    let odd = issuer.sign(&Claims { sub: service_account_name("n", "boss"), ..claims() }).unwrap().unwrap();
    assert_eq!(issuer.check(&odd, &audience("x"), 500), Err(TokenError::Odd));
    let none = format!("eyJhbGciOiJub25lIn0.{body}.");
    assert_eq!(issuer.check(&none, &audience("x"), 500), Err(TokenError::Foreign));
    let foreign = issuer.sign(&Claims { iss: "https://j".to_owned(), ..claims() }).unwrap().unwrap();
    assert_eq!(issuer.check(&foreign, &audience("x"), 500), Err(TokenError::Foreign));
}

#[test]
fn rsa_keys_serve_too() {
    let issuer = issuer(RSA);
    let token = issuer.sign(&claims()).unwrap().unwrap();
    assert_eq!(issuer.check(&token, &["x".to_owned()], 500), Ok(claims()));
    let keys = issuer.published();
    assert_eq!((&keys["keys"][0]["alg"], &keys["keys"][0]["e"]), (&"RS256".into(), &"AQAB".into()));
    assert_eq!(issuer.described("https://k")["id_token_signing_alg_values_supported"][0], "RS256");
}

#[test]
fn what_is_no_key_is_told() {
    assert_eq!(read_public("").err(), Some(KeyError::Empty));
    assert_eq!(SigningKey::read(&pem().1).err(), Some(KeyError::Empty));
    let odd = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    assert_eq!(SigningKey::read(odd).err(), Some(KeyError::Unusable("PRIVATE KEY".to_owned())));
}

/// Made for this test, and used nowhere else.
const RSA: &str = "-----BEGIN PRIVATE KEY-----
MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQDAb58mS1xz23Pw
0WDLV2hfKr8e4/wZP/Zm8Q2KyKehfs9JYhUMzfnPRbXdPZvtjeAzC+Ldl/UxL36p
OohkEdB/i0LQPB7u2YDsnYbRxSDpLYriAi6SRpJiolnfypq6kY05aE2vHgNqHgA8
FnmK35i3p/jZC54dEd7C18aGAihUx7ShDCprZ7PJXpYA2iTwWC8U8OISJt1fHMy+
vxD3TIQgTDT+u0EYOetnf08ZJsP6BoJ5PN2nTc+X6SLzTaznbKVbREh4FBVtSjOU
nlWXp1t0Q06xs7js9lKbQ7e5gSIFwoUUcpl3zqsdVpZyVl0j/jQgTV7se6wAvQlk
7x214xwfAgMBAAECggEACh2T+xpZCMoPZShMc0Pr+5yuoTwQw28GT9D6CkKT9TxK
PyxFuP+W0xtx/OhBKxKbJ3PHgCh9vhEmElU+WCxLjnjOkU2nvpx2V3nMXXiES12W
gFzm/89v4HlySf5HdekyyELAWqU0Pr7G+mGgD/nC+Fx/C0G+FP8ce5eGGwNABXzG
hTpqme3dMrPZvxb6Vv5GFJ1x3LtWn96M/AfHjcabN8wSMZIIdvzUBmCRpp7WsRLM
3Qp0Umi/694lIHd6nd6H0JRKyKWosT8XLOKY00BO0QO21Q8eBGt6oaz0Uob60mjB
2iEaZ+QxJpq4sh6wZWsUE8NNS6Gwc0G3SkowfrsY0QKBgQDzqz1XoEwDNX2rwQgh
w9aRJ74tRTJUx9laN+HeduYlkRcl9e10IVw7PJf7DiM/i76kcvMkVmpfMX3lcqhv
a4d1FucLUq1aVFG+RwFqPCreBoH77UjCpcAEb+VC+Qs6MLUdunrewOz3lH9dgMz9
cVpO79dr2d8pw/7a5IMXGovktwKBgQDKLKdgjWVSdVVTjUXBolE8N2UztcFhov3U
RsBlSesWq8uc2Hw0ejmvCaSFXwXMOKqOcyEfk9ZC806Oh6jzErweRpXpLf0JNHtJ
r0YlZ7zWgNBFaH/Wbu5xdJh+J0iy5OlrAEczsUOQsq/jy5wPzlKjEI2mdqJyj89O
h3IioLir2QKBgQCPdtDlGLHoacQWLc7V4nIggJ/OE6GwnQHxxlksHCEhGS3h4cvu
xf2BuwlYfVhvf529QRi62k5Cweb4Auv8vfjBDbz2w7ThLCf8ud2xaL9sfbRmWayv
PduyQRdguTTNDAR2/mZ9ZGWg10OuD7mhtu2O8FOLYnmsI4OX6VbtcWnQPQKBgG6v
k9NgliBW7KgZqB8i5qa5DUcKMx1pRt54/cx2c6at14O/YgC5Ceuys8fxBhOQ0o+6
qF/JaHyvCEswKmcp0qQgsOJAs0/e08C7nQPNj61ASMY3OAYGJbUnyHUIvNx0Rva1
6EV8vyjxKyrjxkVBCC0OWv7P5JAj+7NapDohE/nBAoGASeFIWrRerieqrAJcMuKT
SDXGj8aTvujch4PduvMFJ4i+RM8AcBCWnYTiHBZb6brjEnRe0SqiplqYpvYZ4Kup
JuFeTnbBFp1JXxUzjjxT1w95wLdh1DTGQBjaDrsFqxX1DD4Gn2wG8hjFtw0XEjv6
4jcIB5kDMG+77yGdQuIpjCQ=
-----END PRIVATE KEY-----
";
