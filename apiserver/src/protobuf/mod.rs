//! Kubernetes protobuf bodies → JSON values. Clients of built-in types send these; what is behind this module sees JSON
//! only. The fields of every message are data (`fields.tsv`, made by `fields.py`): their numbers, JSON names, types, and
//! whether the client's type is a pointer. That last fact decides what zero means: clients write every plain field even
//! if it was never set, so zero is absent there, while zero behind a pointer was set on purpose. Knows no requests.

pub mod table;

pub mod writer;

pub mod error;

pub mod reader;

pub mod special;

pub mod decode;

#[cfg(test)]
mod tests;
