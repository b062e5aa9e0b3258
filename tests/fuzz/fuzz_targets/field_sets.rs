//! Fuzzes `field_sets`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| strata_fuzz::field_sets(data));
