//! Rules in CEL of custom types: compiled, and checked over objects. What an expression is, is next door's affair.

pub mod values;

pub mod rules;

pub mod check;
