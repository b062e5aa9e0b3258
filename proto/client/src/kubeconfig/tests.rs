//! Tests of reading kubeconfig files, faults included.

use super::*;

const TWO: &str = r#"
apiVersion: v1
kind: Config
current-context: here
clusters:
- name: one
  cluster:
    server: https://127.0.0.1:6443
    certificate-authority-data: LS0tLS1CRUdJTiBYLS0tLS0K
- name: bare
  cluster: {server: "127.0.0.1"}
users:
- name: admin
  user: {token: abc}
- name: half
  user:
    client-certificate-data: LS0tLS1CRUdJTiBYLS0tLS0K
- name: cloud
  user:
    exec: {command: login}
contexts:
- name: here
  context: {cluster: one, user: admin, namespace: play}
- name: half
  context: {cluster: one, user: half}
- name: cloud
  context: {cluster: one, user: cloud}
- name: bare
  context: {cluster: bare, user: admin}
- name: lost
  context: {cluster: gone, user: admin}
preferences: {}
"#;

fn config() -> Kubeconfig {
    let mut config = Kubeconfig::default();
    config.add(Path::new("/etc/k"), TWO).unwrap();
    config
}

#[test]
fn the_current_context_leads_to_server_identity_and_namespace() {
    let chosen = config().client_config(None).unwrap();
    assert_eq!(chosen.server.to_string(), "https://127.0.0.1:6443/");
    assert_eq!(chosen.namespace, "play");
    assert_eq!(chosen.token, Some(Token("abc".to_owned())));
    assert!(chosen.ca_pem.unwrap().starts_with(b"-----BEGIN"));
    assert!(!format!("{:?}", chosen.token).contains("abc"));
}

#[test]
fn every_mistake_names_the_file_and_the_field() {
    for (context, expected) in [
        (Some("nope"), "/etc/k: there is no context \"nope\" (known: here, half, cloud, bare, lost)"),
        (Some("lost"), "/etc/k: there is no cluster \"gone\" (known: one, bare)"),
        (Some("half"), "/etc/k: users[half].user.client-key: missing beside client-certificate"),
        (
            Some("cloud"),
            "/etc/k: users[cloud].user.exec: is not supported; use a client certificate or a token",
        ),
    ] {
        assert_eq!(config().client_config(context).unwrap_err().to_string(), expected);
    }
    let bare = config().client_config(Some("bare")).unwrap_err().to_string();
    assert!(bare.starts_with("/etc/k: clusters[bare].cluster.server:") && bare.contains("https://HOST:PORT"));
    let broken = Kubeconfig::default().add(Path::new("/etc/k"), "clusters: [\n- a: {").unwrap_err();
    assert!(broken.to_string().starts_with("/etc/k is no kubeconfig: "), "{broken}");
    let missing = Kubeconfig::load(&["/nowhere/a".into()]).unwrap_err().to_string();
    assert!(missing.contains("/nowhere/a") && missing.contains("strata up"), "{missing}");
}

#[test]
fn the_first_file_wins_and_its_paths_are_relative_to_it() {
    let mut merged = Kubeconfig::default();
    let first = "current-context: b\ncontexts: [{name: b, context: {cluster: one, user: f}}]\n\
                 users: [{name: f, user: {tokenFile: token}}]";
    merged.add(Path::new("/no/such/place/k"), first).unwrap();
    merged.add(Path::new("/etc/k"), TWO).unwrap();
    assert_eq!(merged.current_context(), Some("b"));
    let error = merged.client_config(None).unwrap_err().to_string();
    assert!(error.contains("/no/such/place/token"), "{error}");
    assert_eq!(Kubeconfig::paths_of("/a::/b"), [PathBuf::from("/a"), PathBuf::from("/b")]);
}
