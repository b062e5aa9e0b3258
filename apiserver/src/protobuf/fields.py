#!/usr/bin/env python3
"""Makes fields.tsv, the table of protobuf fields of the built-in types.

    python3 fields.py KUBECTL [OTHER_BINARY ...] > fields.tsv

A Go program carries descriptors of its types: field names, types (so also: is it a pointer?) and the struct tags with
protobuf numbers and JSON names. An amd64 Linux kubectl of release 1.33 holds them for all API types of that release but
apiextensions.k8s.io and apiregistration.k8s.io, for which any Go program that uses them does as a second binary; the first binary that has a
package gives its types. Only Python's standard library is needed. Layouts: Go 1.23 and 1.24.
"""

import re
import struct
import sys

GROUPS = (
    "core apps batch autoscaling policy rbac networking coordination discovery events storage scheduling node "
    "admissionregistration authentication authorization certificates flowcontrol"
).split()
PACKAGES = {f"k8s.io/api/{group}/v1": f"{group}.v1" for group in GROUPS}
PACKAGES["k8s.io/api/autoscaling/v2"] = "autoscaling.v2"
PACKAGES["k8s.io/apimachinery/pkg/apis/meta/v1"] = "meta.v1"
PACKAGES["k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"] = "apiregistration.v1"
PACKAGES["k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"] = "apiextensions.v1"

# Types whose JSON form is not that of a struct.
SPECIAL = {
    "meta.v1.Time": "time",
    "meta.v1.MicroTime": "microtime",
    "meta.v1.FieldsV1": "json",
    "apiextensions.v1.JSON": "json",
    "apiextensions.v1.JSONSchemaPropsOrArray": "schema-or-array",
    "apiextensions.v1.JSONSchemaPropsOrBool": "schema-or-bool",
    "apiextensions.v1.JSONSchemaPropsOrStringArray": "schema-or-strings",
    "k8s.io/apimachinery/pkg/runtime.RawExtension": "json",
    "k8s.io/apimachinery/pkg/api/resource.Quantity": "quantity",
    "k8s.io/apimachinery/pkg/util/intstr.IntOrString": "int-or-string",
}
# Fields of apiextensions.k8s.io/v1 as of release 1.33 that a second binary may be too old to have.
NEWER = {
    "apiextensions.v1.CustomResourceDefinitionVersion": [(9, "selectableFields", "[]apiextensions.v1.SelectableField")],
    "apiextensions.v1.SelectableField": [(1, "jsonPath", "string")],
    "apiextensions.v1.ValidationRule": [
        (3, "messageExpression", "string"),
        (4, "reason", "*string"),
        (5, "fieldPath", "string"),
        (6, "optionalOldSelf", "*bool"),
    ],
}
BOOL, INT32, INT64, UINT8, FLOAT64, MAP, POINTER, SLICE, STRING, STRUCT = 1, 5, 6, 8, 14, 21, 22, 23, 24, 25
SCALARS = {BOOL: "bool", INT32: "int32", INT64: "int64", FLOAT64: "double", STRING: "string"}


class Binary:
    """The type descriptors of one ELF file."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes = file.read()
        (table,) = struct.unpack_from("<Q", self.bytes, 40)
        count, names = struct.unpack_from("<HH", self.bytes, 60)
        headers = [struct.unpack_from("<IIQQQQ", self.bytes, table + 64 * at) for at in range(count)]
        self.sections = {}
        for name, _, _, address, offset, size in headers:
            start = headers[names][4] + name
            end = self.bytes.index(b"\0", start)
            self.sections[self.bytes[start:end].decode()] = (address, offset, size)
        self.base = self.sections[".rodata"][0]

    def offset(self, address):
        for start, offset, size in self.sections.values():
            if start and start <= address < start + size:
                return address - start + offset
        raise ValueError(hex(address))

    def word(self, address):
        return struct.unpack_from("<Q", self.bytes, self.offset(address))[0]

    def text(self, at):
        length = shift = 0
        while True:
            byte = self.bytes[at]
            at += 1
            length |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return self.bytes[at : at + length].decode("utf-8", "replace"), at + length

    def name(self, address):
        at = self.offset(address)
        flags = self.bytes[at]
        name, at = self.text(at + 1)
        return flags, name, self.text(at)[0] if flags & 2 else ""

    def roots(self):
        _, offset, size = self.sections[".typelink"]
        return [self.base + at for at in struct.unpack_from(f"<{size // 4}i", self.bytes, offset)]


class Type:
    """One type descriptor."""

    def __init__(self, binary, address):
        self.binary, self.address = binary, address
        at = binary.offset(address)
        flags, self.kind = binary.bytes[at + 20], binary.bytes[at + 23] & 31
        (name,) = struct.unpack_from("<i", binary.bytes, at + 40)
        name = binary.name(binary.base + name)[1]
        self.name = name[1:] if flags & 2 else name
        self.package = ""
        beside = {STRUCT: 32, POINTER: 8, SLICE: 8}.get(self.kind, 0)
        if flags & 1 and flags & 4 and self.kind in (STRUCT, SLICE, *SCALARS):
            (package,) = struct.unpack_from("<i", binary.bytes, at + 48 + beside)
            self.package = binary.name(binary.base + package)[1] if package else ""

    def full_name(self):
        package = PACKAGES.get(self.package)
        return f"{package or self.package}.{self.name.split('.')[-1]}"

    def element(self):
        return Type(self.binary, self.binary.word(self.address + (56 if self.kind == MAP else 48)))

    def fields(self):
        """Name, tag and type of each field, and whether it is embedded."""
        start, count = self.binary.word(self.address + 56), self.binary.word(self.address + 64)
        for at in range(count):
            name, kind = self.binary.word(start + 24 * at), self.binary.word(start + 24 * at + 8)
            flags, name, tag = self.binary.name(name)
            yield name, tag, Type(self.binary, kind), bool(flags & 8)


def structs(binary):
    """All structs of the wanted packages, by name."""
    found, seen, todo = {}, set(), binary.roots()
    while todo:
        address = todo.pop()
        if address in seen:
            continue
        seen.add(address)
        try:
            kind = Type(binary, address)
            if kind.kind in (POINTER, SLICE, MAP):
                todo.append(kind.element().address)
            elif kind.kind == STRUCT:
                todo += [field.address for _, _, field, _ in kind.fields()]
                if kind.package in PACKAGES:
                    found[kind.full_name()] = kind
        except (ValueError, IndexError, struct.error):
            continue
    return found


def named_list(kind):
    """A list of texts that has a type name of its own is written as a message around the list."""
    return kind.kind == SLICE and kind.package and kind.element().kind == STRING


def base_form(kind, used):
    if kind.kind in SCALARS:
        return SCALARS[kind.kind]
    if kind.kind == SLICE and kind.element().kind == UINT8:
        return "bytes"
    if named_list(kind):
        return "strings"
    if kind.kind == STRUCT:
        name = kind.full_name()
        if name not in SPECIAL:
            used.append(name)
        return SPECIAL.get(name, name)
    raise ValueError(f"{kind.name}: kind {kind.kind}")


def form(kind, inline, used):
    """How a field is written: a mark and the type. `*` pointer, `[]` list, `{}` map, `+` members of the parent."""
    if kind.kind == POINTER:
        return ("+" if inline else "*") + base_form(kind.element(), used)
    if kind.kind == MAP:
        return "{}" + base_form(kind.element(), used)
    if kind.kind == SLICE and kind.element().kind != UINT8 and not named_list(kind):
        element = kind.element()
        return "[]" + base_form(element.element() if element.kind == POINTER else element, used)
    return ("+" if inline else "") + base_form(kind, used)


def main():
    found = {}
    for path in sys.argv[1:]:
        for name, kind in structs(Binary(path)).items():
            found.setdefault(name, kind)
    is_root = lambda kind: any(name == "TypeMeta" and embedded for name, _, _, embedded in kind.fields())
    todo = [name for name, kind in found.items() if is_root(kind)] + ["meta.v1.WatchEvent"]
    table = {}
    while todo:
        name = todo.pop()
        if name in table or name not in found:
            continue
        table[name] = []
        for field, tag, kind, _ in found[name].fields():
            number = re.search(r'protobuf:"[^",]*,(\d+)', tag)
            json = re.search(r'json:"([^",]*)(,inline)?', tag)
            if not number or not json or json[1] == "-":
                continue
            inline = bool(json[2]) or not json[1]
            table[name].append((int(number[1]), "-" if inline else json[1], form(kind, inline, todo)))
    for name, fields in NEWER.items():
        known = {number for number, _, _ in table.setdefault(name, [])}
        table[name] += [field for field in fields if field[0] not in known]
    print("# Protobuf fields of the built-in types, made by fields.py: below each message its fields: number, JSON name, type.")
    print("# Marks of a type: * pointer (zero values count), [] list, {} map with text keys, + its fields are the parent's.")
    for name in sorted(table):
        print(name)
        for number, json, kind in sorted(table[name]):
            print(f"\t{number}\t{json}\t{kind}")


if __name__ == "__main__":
    main()
