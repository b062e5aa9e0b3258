//! The admin port of a process: `/livez`, `/readyz`, `/metrics`, `/debug/queue`, and by hand `POST /debug/retry`. HTTP/1
//! on a loopback address (read only) or on a Unix socket, whose file says who may use it. One port shows all controllers
//! of a process.

pub mod board;
pub mod listen;
pub mod ask;
