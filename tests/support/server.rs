//! Model on loopback that sends the responses of a script in order and records the requests.

use super::{TIMEOUT, wire};
use serde_json::Value;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Point at which a response waits until the test opens the gate.
#[derive(Clone, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub fn open(&self) {
        *lock(&self.0.0) = true;
        self.0.1.notify_all();
    }

    /// Waits until the gate opens. Gives up long after the test must have ended.
    fn pass(&self) {
        let open = lock(&self.0.0);
        drop(self.0.1.wait_timeout_while(open, TIMEOUT * 3, |open| !*open));
    }
}

/// Part of a streamed response.
#[derive(Clone)]
pub(super) enum Piece {
    Text(String),
    /// Tool call. Its arguments are text, so that they can be invalid JSON.
    Call {
        id: String,
        name: String,
        arguments: String,
    },
    Wait(Gate),
    /// Bytes outside any protocol.
    Raw(String),
}

/// End of a stream.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum End {
    /// Stop reason of the model, such as `end_turn` or `max_tokens`.
    Reason(&'static str),
    /// Connection that is dropped in the middle of the response.
    Dropped,
    /// Body that ends normally although the response is incomplete.
    Short,
    /// Connection that stays open without further data.
    Stalled,
}

/// Response of the script.
#[derive(Clone)]
pub struct Answer(Kind);

#[derive(Clone)]
enum Kind {
    Stream { pieces: Vec<Piece>, end: End },
    Whole { status: u16, headers: Vec<(String, String)>, body: String },
}

impl Answer {
    /// Returns a response with this text.
    pub fn text(text: &str) -> Self {
        Self::empty().and(text)
    }

    /// Returns a response with one tool call.
    pub fn call(id: &str, name: &str, arguments: Value) -> Self {
        Self::empty().and_call(id, name, arguments)
    }

    /// Returns an error response with this message of the provider.
    pub fn error(status: u16, kind: &str, message: &str) -> Self {
        let body = serde_json::json!({"type": "error", "error": {"type": kind, "message": message}});
        Self(Kind::Whole { status, headers: vec![("content-type".into(), "application/json".into())], body: body.to_string() })
    }

    /// Returns a response that is not streamed.
    pub fn json(body: &Value) -> Self {
        let headers = vec![("content-type".into(), "application/json".into())];
        Self(Kind::Whole { status: 200, headers, body: body.to_string() })
    }

    /// Returns the response of a captive portal.
    pub fn html() -> Self {
        Self(Kind::Whole {
            status: 200,
            headers: vec![("content-type".into(), "text/html".into())],
            body: "<!doctype html><html><body>Please log in to the network</body></html>".into(),
        })
    }

    pub fn empty() -> Self {
        Self(Kind::Stream { pieces: Vec::new(), end: End::Reason("end_turn") })
    }

    pub fn and(self, text: &str) -> Self {
        self.piece(Piece::Text(text.into()))
    }

    pub fn and_call(self, id: &str, name: &str, arguments: Value) -> Self {
        self.and_raw_call(id, name, &arguments.to_string())
    }

    /// Adds a call whose arguments are this text, valid or not.
    pub fn and_raw_call(self, id: &str, name: &str, arguments: &str) -> Self {
        self.piece(Piece::Call { id: id.into(), name: name.into(), arguments: arguments.into() }).end(End::Reason("tool_use"))
    }

    pub fn and_wait(self, gate: &Gate) -> Self {
        self.piece(Piece::Wait(gate.clone()))
    }

    pub fn and_garbage(self, bytes: &str) -> Self {
        self.piece(Piece::Raw(bytes.into()))
    }

    pub fn stopped_by_max_tokens(self) -> Self {
        self.end(End::Reason("max_tokens"))
    }

    pub fn then_dropped(self) -> Self {
        self.end(End::Dropped)
    }

    pub fn then_short(self) -> Self {
        self.end(End::Short)
    }

    pub fn then_stalled(self) -> Self {
        self.end(End::Stalled)
    }

    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        if let Kind::Whole { headers, .. } = &mut self.0 {
            headers.push((name.into(), value.into()));
        }
        self
    }

    fn piece(mut self, piece: Piece) -> Self {
        if let Kind::Stream { pieces, .. } = &mut self.0 {
            pieces.push(piece);
        }
        self
    }

    fn end(mut self, new: End) -> Self {
        if let Kind::Stream { end, .. } = &mut self.0 {
            *end = new;
        }
        self
    }
}

/// Request of a client.
#[derive(Debug, Clone)]
pub struct Request {
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Value,
}

impl Request {
    /// Returns the messages of the request as JSON text.
    pub fn messages(&self) -> String {
        let told = if self.body["input"].is_array() { &self.body["input"] } else { &self.body["messages"] };
        told.to_string()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Returns the `(id, text)` of each tool result, in order, in any protocol.
    pub fn tool_results(&self) -> Vec<(String, String)> {
        wire::tool_results(&self.body)
    }
}

/// Function that returns the response to a request.
type Mind = Box<dyn Fn(&Request) -> Answer + Send + Sync>;

#[derive(Default)]
struct Shared {
    script: Mutex<VecDeque<Answer>>,
    /// Source of the responses after the end of the script.
    mind: Option<Mind>,
    requests: Mutex<Vec<Request>>,
    /// Body of the list of models, and the requests for this list.
    models: Mutex<Option<String>>,
    lists: Mutex<Vec<Request>>,
    asked: Condvar,
    /// Gate that opens when the server is dropped, so that stalled responses end.
    over: Gate,
}

/// Scripted model, which listens until it is dropped.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Server {
    /// Starts a server that sends these responses, one for each request.
    pub fn new(script: impl IntoIterator<Item = Answer>) -> Self {
        Self::start(Shared { script: Mutex::new(script.into_iter().collect()), ..Shared::default() })
    }

    /// Starts a server whose response depends on the request only, unless the function has a state of its own.
    pub fn with_responder(mind: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        Self::start(Shared { mind: Some(Box::new(mind)), ..Shared::default() })
    }

    fn start(shared: Shared) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(shared);
        let host = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if *lock(&host.over.0.0) {
                    return;
                }
                let shared = Arc::clone(&host);
                // A client that disconnects in the middle of a response is not a failure.
                thread::spawn(move || drop(serve(stream, &shared)));
            }
        });
        Self { address, shared }
    }

    /// Returns the base URL, without `/v1/messages`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sets the list of models by their names.
    pub fn set_models(&self, models: &[&str]) {
        let entries: Vec<Value> = models.iter().map(|name| serde_json::json!({"id": name, "max_model_len": 8192})).collect();
        *lock(&self.shared.models) = Some(serde_json::json!({"object": "list", "data": entries}).to_string());
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Adds a response to the end of the script.
    pub fn push(&self, answer: Answer) {
        lock(&self.shared.script).push_back(answer);
    }

    /// Sets the body of the response to requests for the list of models.
    pub fn with_model_list(self, body: &Value) -> Self {
        *lock(&self.shared.models) = Some(body.to_string());
        self
    }

    /// Returns the requests for the list of models so far.
    pub fn lists(&self) -> Vec<Request> {
        lock(&self.shared.lists).clone()
    }

    /// Returns all requests so far.
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.shared.requests).clone()
    }

    /// Returns the request with this number, from 0. Waits until it arrives.
    #[track_caller]
    pub fn request(&self, number: usize) -> Request {
        let asked = lock(&self.shared.requests);
        let (asked, _) = self
            .shared
            .asked
            .wait_timeout_while(asked, TIMEOUT, |asked| asked.len() <= number)
            .unwrap_or_else(PoisonError::into_inner);
        assert!(asked.len() > number, "request {number} never came; there were {}", asked.len());
        asked[number].clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.over.open();
        // Wakes the listener, so that its thread ends.
        drop(TcpStream::connect_timeout(&self.address, Duration::from_secs(1)));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Handles one request and closes the connection after the response.
fn serve(stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let Some(request) = read_request(&mut reader)? else { return Ok(()) };
    let path = request.path.clone();
    let model = request.body["model"].as_str().unwrap_or("none").to_owned();
    if path.ends_with("/models")
        && let Some(models) = lock(&shared.models).clone()
    {
        lock(&shared.lists).push(request);
        return send_whole(stream, 200, &[("content-type".into(), "application/json".into())], &models);
    }
    let Some(protocol) = wire::Protocol::of(&path) else {
        return send_whole(stream, 404, &[], r#"{"error":{"message":"no such path","type":"not_found_error"}}"#);
    };
    // Request and response are matched under one lock, so two simultaneous clients cannot mix them up.
    let answer = {
        let mut requests = lock(&shared.requests);
        let answer = lock(&shared.script).pop_front().or_else(|| shared.mind.as_ref().map(|mind| mind(&request)));
        requests.push(request);
        answer
    };
    shared.asked.notify_all();
    match answer.map(|answer| answer.0) {
        None => send_whole(
            stream,
            400,
            &[],
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"the script has no more answers"}}"#,
        ),
        Some(Kind::Whole { status, headers, body }) => send_whole(stream, status, &headers, &body),
        Some(Kind::Stream { pieces, end }) => send_stream(stream, protocol, &model, &pieces, &end, &shared.over),
    }
}

fn read_request(reader: &mut BufReader<TcpStream>) -> std::io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let path = line.split(' ').nth(1).unwrap_or_default().split('?').next().unwrap_or_default().to_owned();
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
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Ok(Some(Request { path, headers, body }))
}

fn send_whole(mut stream: TcpStream, status: u16, headers: &[(String, String)], body: &str) -> std::io::Result<()> {
    let mut head = format!("HTTP/1.1 {status} Scripted\r\ncontent-length: {}\r\nconnection: close\r\n", body.len());
    for (name, value) in headers {
        head.extend([name, ": ", value, "\r\n"]);
    }
    stream.write_all(format!("{head}\r\n{body}").as_bytes())?;
    stream.flush()
}

fn send_stream(
    mut stream: TcpStream,
    protocol: wire::Protocol,
    model: &str,
    pieces: &[Piece],
    end: &End,
    over: &Gate,
) -> std::io::Result<()> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes())?;
    let mut emitter = wire::Emitter::new(protocol, model);
    send_chunk(&mut stream, &emitter.start())?;
    for piece in pieces {
        match piece {
            Piece::Wait(gate) => gate.pass(),
            Piece::Raw(bytes) => send_chunk(&mut stream, bytes)?,
            Piece::Text(text) => send_chunk(&mut stream, &emitter.text(text))?,
            Piece::Call { id, name, arguments } => send_chunk(&mut stream, &emitter.call(id, name, arguments))?,
        }
    }
    match end {
        End::Reason(reason) => {
            send_chunk(&mut stream, &emitter.finish(reason))?;
            stream.write_all(b"0\r\n\r\n")
        }
        End::Short => stream.write_all(b"0\r\n\r\n"),
        End::Dropped => stream.shutdown(std::net::Shutdown::Both),
        End::Stalled => {
            over.pass();
            // Keeps the connection open until the server is dropped.
            drop(stream);
            Ok(())
        }
    }
}

fn send_chunk(stream: &mut TcpStream, bytes: &str) -> std::io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    stream.write_all(format!("{:x}\r\n{bytes}\r\n", bytes.len()).as_bytes())?;
    stream.flush()
}
