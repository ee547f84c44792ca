//! Object store on loopback with the protocol of S3 or the XML API of Google Cloud Storage: objects with ETags and
//! generations, conditional writes, uploads in parts, and faults.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Fault in the response to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Error with this status. The request has no effect.
    Status(u16),
    /// Response of S3 to a request whose clock differs too much.
    Skewed,
    /// Loss of the response after the object is written.
    LostAnswer,
    /// Response with only half of its body.
    Half,
    /// Write by another client, which replaces the object with the same content before the request.
    Raced,
    /// Connection that stays open without a response.
    Silence,
}

/// Requests that a fault affects, and their remaining number.
struct Planned {
    method: &'static str,
    part: String,
    left: usize,
    fault: Fault,
}

/// Protocol of the store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Dialect {
    /// S3, where writes are conditional on the ETag.
    #[default]
    S3,
    /// Google Cloud Storage, where writes are conditional on the generation and ignore conditions on the ETag.
    Google,
}

#[derive(Default)]
struct State {
    dialect: Dialect,
    objects: BTreeMap<String, Vec<u8>>,
    versions: BTreeMap<String, u64>,
    parts: BTreeMap<String, BTreeMap<u32, Vec<u8>>>,
    count: u64,
    faults: Vec<Planned>,
    log: VecDeque<String>,
    silent: Vec<TcpStream>,
}

pub struct ObjectServer {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

struct Request {
    method: String,
    path: String,
    query: String,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

fn reply(status: u16) -> Reply {
    Reply { status, headers: Vec::new(), body: Vec::new() }
}

impl ObjectServer {
    pub fn start() -> Self {
        Self::speaking(Dialect::S3)
    }

    /// Starts a stand-in for Google Cloud Storage.
    pub fn google() -> Self {
        Self::speaking(Dialect::Google)
    }

    fn speaking(dialect: Dialect) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State { dialect, ..State::default() }));
        let shared = state.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = shared.clone();
                thread::spawn(move || serve(stream, &state));
            }
        });
        Self { address, state }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns settings that use this server.
    pub fn config(&self) -> String {
        let scheme = if self.state().dialect == Dialect::Google { "gs" } else { "s3" };
        format!("[services.workspace]\nurl = \"{scheme}://team/aye\"\nendpoint = \"{}\"\n", self.url())
    }

    /// Applies a fault to the next `times` requests with this method whose path contains `part`.
    pub fn fail(&self, method: &'static str, part: &str, times: usize, fault: Fault) {
        self.state().faults.push(Planned { method, part: part.to_owned(), left: times, fault });
    }

    /// Ends all faults and closes the connections that are waiting for a response.
    pub fn recover(&self) {
        let mut state = self.state();
        state.faults.clear();
        state.silent.clear();
    }

    /// Returns the names of all objects, without the bucket.
    pub fn names(&self) -> Vec<String> {
        self.state().objects.keys().map(|name| name.trim_start_matches("team/").to_owned()).collect()
    }

    pub fn read(&self, name: &str) -> Option<Vec<u8>> {
        self.state().objects.get(&format!("team/{name}")).cloned()
    }

    pub fn write(&self, name: &str, content: &[u8]) {
        self.state().put(&format!("team/{name}"), content.to_vec());
    }

    /// Returns the method and the path of all requests so far.
    pub fn log(&self) -> Vec<String> {
        self.state().log.iter().cloned().collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn put(&mut self, name: &str, content: Vec<u8>) -> String {
        self.count += 1;
        self.objects.insert(name.to_owned(), content);
        self.versions.insert(name.to_owned(), self.count);
        self.etag(name).unwrap()
    }

    fn etag(&self, name: &str) -> Option<String> {
        self.versions.get(name).map(|version| format!("\"v{version}\""))
    }

    /// Returns the headers that contain the version of an object.
    fn version_headers(&self, name: &str) -> Vec<(&'static str, String)> {
        let etag = self.etag(name).map(|etag| ("etag", etag));
        let generation = self.versions.get(name).filter(|_| self.dialect == Dialect::Google);
        etag.into_iter().chain(generation.map(|version| ("x-goog-generation", version.to_string()))).collect()
    }

    fn fault(&mut self, request: &Request) -> Option<Fault> {
        let path = format!("{}?{}", request.path, request.query);
        let planned = self.faults.iter_mut().find(|planned| {
            planned.left > 0 && (planned.method.is_empty() || planned.method == request.method) && path.contains(&planned.part)
        })?;
        planned.left -= 1;
        Some(planned.fault)
    }

    fn answer(&mut self, request: &Request) -> Reply {
        let name = request.path.trim_start_matches('/').to_owned();
        let query = |key: &str| {
            let pair = request.query.split('&').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('=').map(decode));
            pair.unwrap_or_default()
        };
        match request.method.as_str() {
            "GET" if request.query.contains("list-type") => self.list(&name, &query("prefix")),
            "GET" if self.etag(&name).is_some_and(|etag| request.headers.get("if-none-match") == Some(&etag)) => reply(304),
            "GET" | "HEAD" => self.get(&name, request.method == "HEAD"),
            "PUT" if request.query.contains("uploadId") => {
                let parts = self.parts.entry(query("uploadId")).or_default();
                parts.insert(query("partNumber").parse().unwrap(), request.body.clone());
                Reply { headers: vec![("etag", format!("\"p{}\"", query("partNumber")))], ..reply(200) }
            }
            "PUT" => self.conditional_put(&name, request),
            "POST" if request.query.contains("uploads") => {
                self.count += 1;
                let id = format!("upload{}", self.count);
                let body = format!("<InitiateMultipartUploadResult><UploadId>{id}</UploadId></InitiateMultipartUploadResult>");
                Reply { body: body.into_bytes(), ..reply(200) }
            }
            "POST" if request.query.contains("uploadId") => {
                let content = self.parts.remove(&query("uploadId")).unwrap_or_default().into_values().flatten().collect();
                let etag = self.put(&name, content);
                let headers = self.version_headers(&name);
                let body = format!("<CompleteMultipartUploadResult><ETag>{etag}</ETag></CompleteMultipartUploadResult>");
                Reply { headers, body: body.into_bytes(), ..reply(200) }
            }
            "POST" if request.query.contains("delete") => self.delete_many(&name, &String::from_utf8_lossy(&request.body)),
            "DELETE" => {
                self.objects.remove(&name);
                self.versions.remove(&name);
                reply(204)
            }
            _ => reply(400),
        }
    }

    fn get(&self, name: &str, head: bool) -> Reply {
        let Some(content) = self.objects.get(name) else { return reply(404) };
        let mut headers = self.version_headers(name);
        headers.push(("last-modified", "Mon, 30 Nov 2026 12:00:00 GMT".to_owned()));
        headers.push(("content-length", content.len().to_string()));
        Reply { headers, body: if head { Vec::new() } else { content.clone() }, ..reply(200) }
    }

    fn conditional_put(&mut self, name: &str, request: &Request) -> Reply {
        let header = |name: &str| request.headers.get(name);
        let is_expected = match (self.dialect, header("if-match"), header("if-none-match"), header("x-goog-if-generation-match"))
        {
            (Dialect::S3, Some(expected), ..) => self.etag(name).as_ref() == Some(expected),
            (Dialect::S3, None, Some(_), _) => self.etag(name).is_none(),
            // The generation of a missing object is 0.
            (Dialect::Google, .., Some(expected)) => {
                self.versions.get(name).copied().unwrap_or_default().to_string() == *expected
            }
            (Dialect::S3 | Dialect::Google, ..) => true,
        };
        if !is_expected {
            return reply(412);
        }
        self.put(name, request.body.clone());
        Reply { headers: self.version_headers(name), ..reply(200) }
    }

    fn list(&self, bucket: &str, prefix: &str) -> Reply {
        let mut body = "<ListBucketResult><IsTruncated>false</IsTruncated>".to_owned();
        let start = format!("{}/", bucket.trim_end_matches('/'));
        for (name, content) in &self.objects {
            let Some(key) = name.strip_prefix(&start).filter(|key| key.starts_with(prefix)) else { continue };
            let (etag, size) = (self.etag(name).unwrap_or_default(), content.len());
            let _ = write!(
                body,
                "<Contents><Key>{key}</Key><LastModified>2026-11-30T12:00:00.000Z</LastModified><Size>{size}</Size>\
                 <ETag>{etag}</ETag></Contents>"
            );
        }
        body.push_str("</ListBucketResult>");
        Reply { body: body.into_bytes(), ..reply(200) }
    }

    fn delete_many(&mut self, bucket: &str, body: &str) -> Reply {
        let mut answer = "<DeleteResult>".to_owned();
        for key in body.split("<Key>").skip(1).filter_map(|rest| rest.split("</Key>").next()) {
            let name = format!("{}/{key}", bucket.trim_end_matches('/'));
            self.objects.remove(&name);
            self.versions.remove(&name);
            let _ = write!(answer, "<Deleted><Key>{key}</Key></Deleted>");
        }
        answer.push_str("</DeleteResult>");
        Reply { body: answer.into_bytes(), ..reply(200) }
    }
}

fn serve(stream: TcpStream, state: &Mutex<State>) {
    let Ok(writer) = stream.try_clone() else { return };
    let (mut reader, mut writer) = (BufReader::new(stream), writer);
    while let Some(request) = read_request(&mut reader) {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.log.push_back(format!("{} {}", request.method, request.path));
        let (reply, whole) = match state.fault(&request) {
            Some(Fault::Status(status)) => (reply(status), true),
            Some(Fault::Skewed) => {
                let body = "<Error><Code>RequestTimeTooSkewed</Code><Message>Too far off</Message></Error>";
                (Reply { body: body.into(), ..reply(403) }, true)
            }
            Some(Fault::LostAnswer) => {
                state.answer(&request);
                return;
            }
            Some(Fault::Half) => (state.answer(&request), false),
            Some(Fault::Raced) => {
                let name = request.path.trim_start_matches('/').to_owned();
                if let Some(content) = state.objects.get(&name).cloned() {
                    state.put(&name, content);
                }
                (state.answer(&request), true)
            }
            Some(Fault::Silence) => {
                state.silent.extend(writer.try_clone());
                return;
            }
            None => (state.answer(&request), true),
        };
        drop(state);
        if send(&mut writer, &request, reply, whole).is_err() || !whole {
            return;
        }
    }
}

fn send(writer: &mut TcpStream, request: &Request, reply: Reply, whole: bool) -> std::io::Result<()> {
    let mut head = format!("HTTP/1.1 {} Scripted\r\n", reply.status);
    for (name, value) in &reply.headers {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    if !reply.headers.iter().any(|(name, _)| *name == "content-length") {
        let _ = write!(head, "content-length: {}\r\n", reply.body.len());
    }
    head.push_str("\r\n");
    writer.write_all(head.as_bytes())?;
    let sent = if whole { reply.body.len() } else { reply.body.len() / 2 };
    if request.method != "HEAD" {
        writer.write_all(&reply.body[..sent])?;
    }
    writer.flush()
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { method, path: decode(path), query: query.to_owned(), headers, body })
}

/// Decodes a path or a part of a query. All names are ASCII.
fn decode(text: &str) -> String {
    let mut parts = text.split('%');
    let mut decoded = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => decoded.extend([char::from(byte).to_string().as_str(), &part[2..]]),
            None => decoded.extend(["%", part]),
        }
    }
    decoded
}
