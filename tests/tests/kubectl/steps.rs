//! What each command of kubectl must come to: its exit code, and words that it must say. `{ns}` stands for the namespace,
//! `{node}` for the node. Knows no process and no server.

/// One command.
pub struct Step {
    /// The first minor version that has it.
    pub since: u32,
    /// Its words; those between single quotes are one.
    pub line: &'static str,
    /// Its exit code.
    pub code: i32,
    /// What its output contains.
    pub says: &'static [&'static str],
}

const fn ok(line: &'static str, says: &'static [&'static str]) -> Step {
    Step { since: 0, line, code: 0, says }
}

const fn fails(line: &'static str, says: &'static [&'static str]) -> Step {
    Step { since: 0, line, code: 1, says }
}

const fn since(since: u32, step: Step) -> Step {
    Step { since, ..step }
}

/// The files that steps name, and what is in them at first.
pub const MANIFESTS: &[(&str, &str)] = &[
    (
        "settings.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, labels: {team: a}}\ndata: {mode: calm}\n",
    ),
    ("misspelt.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: misspelt}\ndat: {mode: calm}\n"),
    (
        "one.yaml",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: one, labels: {app: one}}\nspec: {containers: [{name: c, image: nginx}]}\n",
    ),
    (
        "web.yaml",
        r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: nginx, ports: [{containerPort: 80}]}]}
"#,
    ),
];

/// `create` in its forms.
pub const CREATE: &[Step] = &[
    ok("get all", &["No resources found in {ns} namespace."]),
    ok("get namespace {ns} -o jsonpath={.status.phase}", &["Active"]),
    ok("create deployment d --image=nginx --replicas=2", &["deployment.apps/d created"]),
    ok("create configmap cm --from-literal=a=1", &["configmap/cm created"]),
    fails("create configmap cm --from-literal=a=1", &["configmaps \"cm\" already exists"]),
    ok(
        "create configmap dry --from-literal=a=1 --dry-run=server",
        &["configmap/dry created (server dry run)"],
    ),
    fails("get configmap dry", &["Error from server (NotFound): configmaps \"dry\" not found"]),
    ok("create secret generic s --from-literal=a=1", &["secret/s created"]),
    ok("create secret docker-registry r --docker-username=u --docker-password=p", &["secret/r created"]),
    ok("create job j --image=nginx", &["job.batch/j created"]),
    ok("create cronjob cj --image=nginx '--schedule=0 0 1 1 *'", &["cronjob.batch/cj created"]),
    ok("create job j2 --from=cronjob/cj", &["job.batch/j2 created"]),
    ok("create serviceaccount sa", &["serviceaccount/sa created"]),
    ok("create role r --verb=get --resource=pods", &["role.rbac.authorization.k8s.io/r created"]),
    ok(
        "create rolebinding rb --role=r --serviceaccount={ns}:sa",
        &["rolebinding.rbac.authorization.k8s.io/rb created"],
    ),
    ok(
        "create clusterrole {ns} --verb=get --resource=pods",
        &["clusterrole.rbac.authorization.k8s.io/{ns} created"],
    ),
    ok(
        "create clusterrolebinding {ns} --clusterrole={ns} --user=u",
        &["clusterrolebinding.rbac.authorization.k8s.io/{ns} created"],
    ),
    ok("create quota q --hard=pods=1000", &["resourcequota/q created"]),
    ok("create service clusterip svc --tcp=80:80", &["service/svc created"]),
    ok("create service nodeport np --tcp=80:80", &["service/np created"]),
    ok("create ingress i --rule=a/b=svc:80", &["ingress.networking.k8s.io/i created"]),
    ok(
        "create poddisruptionbudget p --selector=app=x --min-available=1",
        &["poddisruptionbudget.policy/p created"],
    ),
    ok("create priorityclass {ns} --value=5", &["priorityclass.scheduling.k8s.io/{ns} created"]),
    ok("autoscale deployment d --max=3", &["horizontalpodautoscaler.autoscaling/d autoscaled"]),
    fails("create -f misspelt.yaml", &["unknown field \"dat\""]),
    since(
        27,
        ok(
            "create -f misspelt.yaml --validate=warn",
            &["Warning: unknown field \"dat\"", "configmap/misspelt created"],
        ),
    ),
    ok("create -f one.yaml", &["pod/one created"]),
    ok("set serviceaccount deployment/d sa", &["deployment.apps/d serviceaccount updated"]),
    ok("set selector service svc a=b", &["service/svc selector updated"]),
    ok("set subject rolebinding rb --user=x", &["rolebinding.rbac.authorization.k8s.io/rb subjects updated"]),
];

/// Who may do what.
pub const ACCESS: &[Step] = &[
    ok("auth can-i get pods", &["yes"]),
    ok("auth can-i --list", &["Resources", "*.*", "[*]"]),
    since(28, ok("auth whoami", &["Username", "system:masters"])),
    fails("certificate approve none", &["certificatesigningrequests.certificates.k8s.io \"none\" not found"]),
];

/// `get` in its forms, events, logs, and what is not served.
pub const READ: &[Step] = &[
    ok(
        "get all",
        &[
            "pod/one",
            "deployment.apps/d",
            "job.batch/j",
            "cronjob.batch/cj",
            "service/svc",
            "horizontalpodautoscaler",
        ],
    ),
    ok("get pods -A", &["NAMESPACE", "one"]),
    ok("get pods --sort-by=.metadata.name", &["NAME", "READY", "STATUS", "RESTARTS", "AGE"]),
    ok("get pods -o wide", &["NODE", "NOMINATED NODE", "READINESS GATES", "{node}"]),
    ok("get pod one -o yaml", &["kind: Pod", "uid:"]),
    ok("get pods -o json", &["\"kind\": \"List\"", "\"kind\": \"Pod\""]),
    ok("get pods -l app=one -o name", &["pod/one"]),
    ok("get pods --field-selector spec.nodeName={node},status.phase=Running -o name", &["pod/one"]),
    ok("get pods --chunk-size=1 --show-labels", &["app=one", "app=d"]),
    ok("get pods -L app", &["APP"]),
    ok("get pods -o custom-columns=N:.metadata.name", &["N\n", "one"]),
    ok("get configmaps,secrets", &["configmap/cm", "secret/s", "secret/r"]),
    fails("get pods/x service/svc", &["svc", "pods \"x\" not found"]),
    fails("get nothing", &["the server doesn't have a resource type \"nothing\""]),
    ok("get -f one.yaml", &["one"]),
    ok("get configmaps -w --request-timeout=2s", &["cm"]),
    since(27, ok("get deployment d --subresource=status", &["d"])),
    ok("get events", &["LAST SEEN", "Scheduled", "pod/one"]),
    since(27, ok("events", &["Successfully assigned {ns}/one"])),
    since(27, ok("events --for pod/one", &["Pod/one", "Started container c"])),
    ok("logs one", &["is simulated"]),
    ok("logs -l app=d", &["is simulated"]),
    ok("logs deployment/d --tail=3", &["is simulated"]),
    fails("logs none", &["pods \"none\" not found"]),
    fails("top pods", &["Metrics API not available"]),
    // Each version falls back from websockets in words of its own.
    fails("exec one -- true", &["rror"]),
    fails("port-forward pod/one 0:80", &["rror"]),
    since(27, ok("debug one --image=busybox -c look", &[])),
    since(27, ok("get pod one -o jsonpath={.spec.ephemeralContainers[*].name}", &["look"])),
];

/// `describe` of many types.
pub const DESCRIBE: &[Step] = &[
    ok("describe deployment d", &["StrategyType:", "RollingUpdate", "NewReplicaSet:", "ScalingReplicaSet"]),
    ok("describe pod one", &["Node:", "{node}/", "QoS Class:", "Successfully assigned {ns}/one to {node}"]),
    ok("describe replicaset -l app=d", &["Controlled By:", "Deployment/d"]),
    ok("describe service svc", &["Type:", "ClusterIP", "Port:"]),
    ok("describe node {node}", &["Allocatable:", "Allocated resources:", "Non-terminated Pods:", "Lease:"]),
    ok("describe namespace {ns}", &["Status:", "Active", "Resource Quotas"]),
    ok("describe configmap cm", &["Data", "a:", "1"]),
    ok("describe secret s", &["Type:  Opaque", "1 byte"]),
    ok("describe job j", &["Parallelism:", "Completions:", "Created pod: j-"]),
    ok("describe cronjob cj", &["Schedule:", "0 0 1 1 *", "Concurrency Policy:"]),
    ok("describe ingress i", &["svc:80"]),
    ok("describe hpa d", &["Deployment/d", "Max replicas:", "3"]),
    ok("describe serviceaccount sa", &["Name:", "sa"]),
    ok("describe quota q", &["Resource", "Used", "Hard"]),
    ok("describe poddisruptionbudget p", &["Min available:", "Allowed disruptions:"]),
    ok("describe role r", &["pods", "[get]"]),
    ok("describe rolebinding rb", &["ServiceAccount", "User"]),
    ok("describe priorityclass {ns}", &["Value:", "5"]),
];

/// Discovery, schemas, versions.
pub const SCHEMAS: &[Step] = &[
    ok("explain pod.spec.containers", &["containers", "DESCRIPTION", "imagePullPolicy"]),
    ok("explain deployment --recursive", &["rollingUpdate", "maxSurge"]),
    ok("explain hpa.spec.metrics", &["containerResource"]),
    since(27, ok("explain pods --output=plaintext-openapiv2", &["KIND:     Pod", "FIELDS:"])),
    fails("explain pod.spec.nothing", &["nothing"]),
    ok("api-resources", &["deployments", "apps/v1", "Deployment", "customresourcedefinitions"]),
    ok("api-resources --verbs=list -o name --api-group=apps", &["deployments.apps", "statefulsets.apps"]),
    ok("api-versions", &["apps/v1", "batch/v1", "\nv1\n"]),
    ok("cluster-info", &["is running at"]),
    ok("version -o json", &["serverVersion", "+strata"]),
    ok("get --raw /version", &["gitVersion"]),
    ok("get --raw '/readyz?verbose'", &["readyz check passed"]),
    fails("get --raw /nothing", &["NotFound"]),
];

/// Apply as the client does it.
pub const APPLY: &[Step] = &[
    ok("apply -f settings.yaml", &["configmap/settings created"]),
    ok("apply -f settings.yaml", &["configmap/settings unchanged"]),
    ok("diff -f settings.yaml", &[]),
    ok("apply view-last-applied -f settings.yaml", &["mode: calm"]),
];

/// The same once the manifest has changed.
pub const APPLY_CHANGED: &[Step] = &[
    fails("diff -f settings.yaml", &["-  mode: calm", "+  mode: loud"]),
    ok("apply -f settings.yaml --dry-run=server", &["configmap/settings configured (server dry run)"]),
    ok("apply -f settings.yaml", &["configmap/settings configured"]),
    ok("get configmap settings -o jsonpath={.data.mode}", &["loud"]),
    ok("apply --server-side -f settings.yaml", &["configmap/settings serverside-applied"]),
];

/// Apply as the server does it, after one by the client.
pub const APPLY_BY_SERVER: &[Step] = &[
    fails("diff --server-side -f settings.yaml", &["-  mode: loud", "+  mode: calm"]),
    fails(
        "apply --server-side --field-manager=other -f settings.yaml",
        &["conflict", ".data.mode", "--force-conflicts"],
    ),
    ok("apply --server-side -f settings.yaml", &["configmap/settings serverside-applied"]),
    ok(
        "apply --server-side --field-manager=other -f settings.yaml",
        &["configmap/settings serverside-applied"],
    ),
    ok("get configmap settings -o jsonpath={.data.mode}", &["calm"]),
    ok("diff --server-side -f settings.yaml", &[]),
];

/// `set`, and `rollout` in its forms.
pub const ROLLOUT: &[Step] = &[
    ok("apply -f web.yaml", &["deployment.apps/web created"]),
    ok("apply --prune -l app=web -f web.yaml", &["deployment.apps/web unchanged"]),
    ok("rollout status deployment/web --timeout=40s", &["deployment \"web\" successfully rolled out"]),
    ok("set image deployment/web c=nginx:2", &["deployment.apps/web image updated"]),
    ok("set env deployment/web A=b", &["deployment.apps/web env updated"]),
    ok("set resources deployment/web --limits=cpu=1", &["deployment.apps/web resource requirements updated"]),
    ok("rollout status deployment/web --timeout=40s", &["deployment \"web\" successfully rolled out"]),
    ok("rollout history deployment/web", &["REVISION", "CHANGE-CAUSE", "1 "]),
    ok("rollout history deployment/web --revision=1", &["Pod Template:", "nginx"]),
    ok("rollout undo deployment/web --to-revision=1", &["deployment.apps/web rolled back"]),
    ok("get deployment web -o jsonpath={.spec.template.spec.containers[0].image}", &["nginx"]),
    ok("rollout restart deployment/web", &["deployment.apps/web restarted"]),
    ok("rollout pause deployment/web", &["deployment.apps/web paused"]),
    ok("rollout resume deployment/web", &["deployment.apps/web resumed"]),
    ok("rollout status deployment/web --timeout=40s", &["deployment \"web\" successfully rolled out"]),
];

/// `scale` in its forms.
pub const SCALE: &[Step] = &[
    ok("scale deployment web --replicas=2", &["deployment.apps/web scaled"]),
    ok("scale deployment web --replicas=3 --current-replicas=2", &["deployment.apps/web scaled"]),
    ok("scale deployment web --replicas=1 --timeout=40s", &["deployment.apps/web scaled"]),
    fails("scale deployment web --replicas=5 --current-replicas=9", &["xpected replicas to be 9"]),
    since(
        27,
        ok(
            "patch deployment web --subresource=scale --type=merge -p '{\"spec\":{\"replicas\":2}}'",
            &["patched"],
        ),
    ),
];

/// `label`, `annotate`, `patch`, `edit`, `replace`, `expose`.
pub const CHANGE: &[Step] = &[
    ok("label configmap settings x=y", &["configmap/settings labeled"]),
    fails("label configmap settings x=z", &["already has a value (y)"]),
    ok("label configmap settings x-", &["configmap/settings "]),
    ok("annotate configmap settings x=y", &["configmap/settings annotated"]),
    ok("patch deployment web -p '{\"spec\":{\"replicas\":2}}'", &["deployment.apps/web patched"]),
    ok(
        "patch deployment web --type=merge -p '{\"spec\":{\"replicas\":1}}'",
        &["deployment.apps/web patched"],
    ),
    fails(
        "patch deployment web --type=json -p '[{\"op\":\"test\",\"path\":\"/spec/replicas\",\"value\":7}]'",
        &["The request is invalid"],
    ),
    ok("edit configmap settings", &["configmap/settings edited"]),
    ok("get configmap settings -o jsonpath={.data.mode}", &["edited"]),
    ok("create -f one.yaml", &["pod/one created"]),
    ok("replace -f settings.yaml", &["configmap/settings replaced"]),
    ok("replace --force -f one.yaml", &["pod \"one\" deleted", "pod/one replaced"]),
    ok("expose deployment web --port=80", &["service/web exposed"]),
];

/// `run` and `wait`.
pub const RUN_AND_WAIT: &[Step] = &[
    ok("run r --image=nginx --restart=Never", &["pod/r created"]),
    ok("wait pod/r --for=condition=Ready --timeout=40s", &["pod/r condition met"]),
    since(
        27,
        ok("wait pod/r --for=jsonpath={.status.phase}=Running --timeout=40s", &["pod/r condition met"]),
    ),
    ok("wait configmap/none --for=delete", &[]),
    fails("wait pod/none --for=condition=Ready --timeout=1s", &["pods \"none\" not found"]),
    fails("wait pod/r --for=condition=Nothing --timeout=1s", &["timed out waiting for the condition"]),
    since(31, ok("wait pod/r --for=create --timeout=5s", &["pod/r condition met"])),
];

/// `delete` in its forms.
pub const DELETE: &[Step] = &[
    ok("delete pod r --now", &["pod \"r\" deleted"]),
    ok("delete pod one --grace-period=0 --force", &["pod \"one\" force deleted"]),
    fails("delete configmap none", &["Error from server (NotFound): configmaps \"none\" not found"]),
    ok("delete configmap none --ignore-not-found", &[]),
    ok("delete configmap settings --dry-run=server", &["configmap \"settings\" deleted", "(server dry run)"]),
    ok("delete configmap -l team=a", &["configmap \"settings\" deleted"]),
    ok("create deployment d --image=nginx", &["deployment.apps/d created"]),
    ok("delete deployment d --cascade=foreground --timeout=40s", &["deployment.apps \"d\" deleted"]),
    ok("create deployment kept --image=nginx", &["deployment.apps/kept created"]),
    ok("rollout status deployment/kept --timeout=40s", &["successfully rolled out"]),
    ok("delete deployment kept --cascade=orphan --timeout=40s", &["deployment.apps \"kept\" deleted"]),
    ok("get replicasets,pods -l app=kept -o name", &["replicaset.apps/kept-", "pod/kept-"]),
];

/// `cordon`, `taint`, `drain`.
pub const NODES: &[Step] = &[
    ok("cordon {node}", &["node/{node} cordoned"]),
    ok("get node {node}", &["Ready,SchedulingDisabled"]),
    ok("uncordon {node}", &["node/{node} uncordoned"]),
    ok("taint node {node} a=b:NoSchedule", &["node/{node} tainted"]),
    ok("taint node {node} a-", &["node/{node} untainted"]),
    ok(
        "drain {node} --ignore-daemonsets --delete-emptydir-data --force --timeout=40s",
        &["node/{node} cordoned", "evicting pod"],
    ),
    ok("uncordon {node}", &["node/{node} uncordoned"]),
];
