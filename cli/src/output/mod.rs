//! How results are printed. All but `stdout` is pure: values and time in, text out. Knows no server and no command.

pub mod duration;

pub mod stdout;

pub mod style;

pub mod yaml;

pub mod table;

pub mod columns;

pub mod format;

pub mod sort;

pub mod difference;
