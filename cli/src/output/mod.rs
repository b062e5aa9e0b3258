//! How results are printed. Pure: values and time in, text out. Knows no server.
