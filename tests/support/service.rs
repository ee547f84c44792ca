//! Service on loopback that records requests and responds as a test specifies: completely, slowly, with a truncated
//! body, or not at all.

use super::TIMEOUT;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Request that the service received.
#[derive(Debug, Clone)]
pub struct Call {
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Call {
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map_or("", |(_, value)| value)
    }

    /// Parses the body as JSON.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// Response of the service.
#[derive(Debug, Clone, Default)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Whether the connection is closed in the middle of the body.
    pub is_cut: bool,
}

impl Response {
    pub fn status(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

type Mind = Box<dyn Fn(&Call) -> Response + Send + Sync>;

struct Shared {
    mind: Mind,
    calls: Mutex<Vec<Call>>,
    over: AtomicBool,
}

/// Service that listens until it is dropped.
pub struct Service {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Service {
    pub fn new(mind: impl Fn(&Call) -> Response + Send + Sync + 'static) -> Self {
        Self::at(0, mind)
    }

    /// Starts a service that accepts everything.
    pub fn accepting() -> Self {
        Self::new(|_| Response::status(200))
    }

    /// Starts a service on a port that an earlier service used; 0 chooses a free port.
    pub fn at(port: u16, mind: impl Fn(&Call) -> Response + Send + Sync + 'static) -> Self {
        let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        // An earlier service on this port may not have closed it yet.
        super::wait_until(TIMEOUT, || bind().is_ok());
        let listener = bind().unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared { mind: Box::new(mind), calls: Mutex::default(), over: AtomicBool::new(false) });
        let host = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if host.over.load(Ordering::SeqCst) {
                    return;
                }
                let shared = Arc::clone(&host);
                thread::spawn(move || drop(serve(stream, &shared)));
            }
        });
        Self { address, shared }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns all requests so far.
    pub fn calls(&self) -> Vec<Call> {
        lock(&self.shared.calls).clone()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        // Wakes the listener, so that its thread ends and the port becomes free.
        drop(TcpStream::connect_timeout(&self.address, Duration::from_secs(1)));
    }
}

/// Returns a port on which nothing listens.
pub fn closed_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    while let Some(call) = read_call(&mut reader)? {
        if shared.over.load(Ordering::SeqCst) {
            return Ok(());
        }
        let response = (shared.mind)(&call);
        lock(&shared.calls).push(call);
        let mut head = format!("HTTP/1.1 {} Scripted\r\ncontent-length: {}\r\n", response.status, response.body.len());
        for (name, value) in &response.headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        stream.write_all(format!("{head}\r\n").as_bytes())?;
        if response.is_cut {
            stream.write_all(&response.body[..response.body.len() / 2])?;
            return stream.shutdown(std::net::Shutdown::Both);
        }
        stream.write_all(&response.body)?;
        stream.flush()?;
    }
    Ok(())
}

fn read_call(reader: &mut BufReader<TcpStream>) -> std::io::Result<Option<Call>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut headers = Vec::new();
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(Call { path, headers, body }))
}
