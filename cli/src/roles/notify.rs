//! Readiness: how a process tells whoever started it that it serves, in the words of `sd_notify(3)`, so that systemd and
//! our own supervisor hear the same. One datagram, no polling. Knows nothing of what being ready means.
//!
//! A name that begins with `@` is an abstract one, as our supervisor's is: it needs no file, and no path can be too
//! long. Whoever can see its random name could claim that a child is ready, and gain nothing by it.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The variable that names the socket.
pub const VARIABLE: &str = "NOTIFY_SOCKET";
/// Most bytes of one message that are read; ours are far shorter.
const MESSAGE_BYTES: usize = 1024;

/// What a process says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// It serves.
    Ready,
    /// It is about to end because it was asked to.
    Stopping,
}

impl Message {
    fn text(self) -> &'static str {
        match self {
            Message::Ready => "READY=1",
            Message::Stopping => "STOPPING=1",
        }
    }
}

/// Tells whoever asked for it in the environment; nobody did when the role was started by hand. A failure is logged:
/// the role serves all the same.
pub fn tell(message: Message) {
    let Some(socket) = std::env::var_os(VARIABLE) else { return };
    if let Err(error) = send(&socket, message) {
        tracing::warn!(%error, ?message, "cannot tell the supervisor");
    }
}

fn send(socket: &OsStr, message: Message) -> io::Result<()> {
    let address = match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        path => SocketAddr::from_pathname(OsStr::from_bytes(path))?,
    };
    UnixDatagram::unbound()?.send_to_addr(message.text().as_bytes(), &address).map(|_| ())
}

/// The ear of a supervisor: one for each start of a child, so that nothing an earlier one said is taken for the new one's.
pub struct Ear {
    name: String,
    socket: tokio::net::UnixDatagram,
}

impl Ear {
    /// Opens a socket with a name of its own. Needs a tokio runtime with IO.
    ///
    /// # Errors
    /// No socket can be had.
    pub fn open() -> io::Result<Ear> {
        let name = format!("strata-{}", uuid::Uuid::new_v4().simple());
        let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name.as_bytes())?)?;
        socket.set_nonblocking(true)?;
        Ok(Ear { name: format!("@{name}"), socket: tokio::net::UnixDatagram::from_std(socket)? })
    }

    /// What the child's variable must hold.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Waits for the next thing the child says; words of the protocol that are not ours are passed over.
    ///
    /// # Errors
    /// The socket failed.
    pub async fn hear(&self) -> io::Result<Message> {
        let mut buffer = [0; MESSAGE_BYTES];
        loop {
            let length = self.socket.recv(&mut buffer).await?;
            let words = buffer[..length].split(|byte| *byte == b'\n');
            for word in words {
                for message in [Message::Ready, Message::Stopping] {
                    if word == message.text().as_bytes() {
                        return Ok(message);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_told_is_heard() {
        let ear = Ear::open().unwrap();
        let socket = OsStr::new(ear.name());
        send(socket, Message::Ready).unwrap();
        send(socket, Message::Stopping).unwrap();
        assert_eq!(ear.hear().await.unwrap(), Message::Ready);
        assert_eq!(ear.hear().await.unwrap(), Message::Stopping);
    }

    #[tokio::test]
    async fn a_path_works_too_and_other_words_are_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let socket = tokio::net::UnixDatagram::bind(&path).unwrap();
        send(path.as_os_str(), Message::Ready).unwrap();
        let ear = Ear { name: String::new(), socket };
        assert_eq!(ear.hear().await.unwrap(), Message::Ready);
        let sender = UnixDatagram::unbound().unwrap();
        sender.send_to(b"STATUS=half way\nMAINPID=1", &path).unwrap();
        sender.send_to(b"STATUS=there\nREADY=1", &path).unwrap();
        assert_eq!(ear.hear().await.unwrap(), Message::Ready);
    }
}
