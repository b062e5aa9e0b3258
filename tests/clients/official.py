"""The official Python client against a platform: typed objects, patches, apply, watches, custom objects."""

import sys

from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException

config.load_kube_config(sys.argv[1])
core = client.CoreV1Api()

# Typed: create, read, list with selectors, replace, patch, delete.
body = client.V1ConfigMap(
    metadata=client.V1ObjectMeta(name="settings", labels={"app": "py"}), data={"colour": "green"}
)
made = core.create_namespaced_config_map("default", body)
assert made.metadata.uid and made.metadata.resource_version
listed = core.list_namespaced_config_map("default", label_selector="app=py")
assert [item.metadata.name for item in listed.items] == ["settings"], listed

patched = core.patch_namespaced_config_map("settings", "default", {"data": {"size": "large"}})
assert patched.data == {"colour": "green", "size": "large"}, patched.data
removed = core.patch_namespaced_config_map(
    "settings", "default", [{"op": "remove", "path": "/data/size"}], _content_type="application/json-patch+json"
)
assert removed.data == {"colour": "green"}, removed.data

made.data = {"colour": "late"}
try:
    core.replace_namespaced_config_map("settings", "default", made)
    raise AssertionError("a stale replace went through")
except ApiException as refused:
    assert refused.status == 409 and "the object has been modified" in refused.body, refused

# Watch from the list's revision: what happened since, in order.
core.patch_namespaced_config_map("settings", "default", {"data": {"colour": "blue"}})
core.delete_namespaced_config_map("settings", "default")
seen = []
for event in watch.Watch().stream(
    core.list_namespaced_config_map,
    "default",
    label_selector="app=py",
    resource_version=removed.metadata.resource_version,
    timeout_seconds=20,
):
    seen.append((event["type"], event["object"].data["colour"]))
    if event["type"] == "DELETED":
        break
assert seen == [("MODIFIED", "blue"), ("DELETED", "blue")], seen

# Workloads: the typed API of another group, and the scale subresource.
apps = client.AppsV1Api()
template = {
    "metadata": {"labels": {"app": "py"}},
    "spec": {"containers": [{"name": "c", "image": "app"}]},
}
spec = {"replicas": 2, "selector": {"matchLabels": {"app": "py"}}, "template": template}
apps.create_namespaced_deployment(
    "default", {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
)
apps.patch_namespaced_deployment_scale("web", "default", {"spec": {"replicas": 3}})
for event in watch.Watch().stream(apps.list_namespaced_deployment, "default", timeout_seconds=30):
    if (event["object"].status.available_replicas or 0) == 3:
        break
else:
    raise AssertionError("the deployment did not become available")

# Custom objects: a definition, the dynamic client, server-side apply with a conflict.
schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
names = {"plural": "widgets", "singular": "widget", "kind": "Widget"}
definition = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]},
}
client.ApiextensionsV1Api().create_custom_resource_definition(definition)
widgets = dynamic.DynamicClient(client.ApiClient()).resources.get(api_version="example.com/v1", kind="Widget")


def widget(size):
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": size}}


applied = widgets.server_side_apply(body=widget(1), name="w", namespace="default", field_manager="one")
again = widgets.server_side_apply(body=widget(1), name="w", namespace="default", field_manager="one")
assert again.metadata.resourceVersion == applied.metadata.resourceVersion, "an apply that changes nothing wrote"
try:
    widgets.server_side_apply(body=widget(2), name="w", namespace="default", field_manager="two")
    raise AssertionError("a conflict went through")
except ApiException as refused:
    assert refused.status == 409 and "conflict" in str(refused.body), refused
forced = widgets.server_side_apply(
    body=widget(2), name="w", namespace="default", field_manager="two", force_conflicts=True
)
assert forced.spec.size == 2
print("all as it should be")
