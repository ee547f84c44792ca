//! Tests of `HttpRequest` with a test server and resolver: requests, refusals, and results for the model.

use super::*;
use crate::policy::{Bundle, Context, Enforcer, Layer, Sandbox, Scope};
use crate::protocol::{Mode, VerdictKind};
use crate::sys::http::fetch::Resolver;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Mutex;

const OPEN: &str = "requires_approval = false";
const ASKS: &str = "requires_approval = true";

/// Resolver that returns these responses one after the other and then repeats the last one.
#[derive(Default)]
struct Names {
    answers: Mutex<BTreeMap<String, Vec<Vec<IpAddr>>>>,
    asked: Mutex<Vec<String>>,
}

impl Resolver for Names {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        self.asked.lock().unwrap().push(name.to_owned());
        let mut answers = self.answers.lock().unwrap();
        let found = answers.get_mut(name).map(|left| if left.len() > 1 { left.remove(0) } else { left[0].clone() });
        std::future::ready(found.ok_or_else(|| std::io::Error::other("no such name"))).boxed()
    }
}

/// A loopback server that stands in for every address. Each request receives the next response.
struct Net {
    bench: Bench,
    address: SocketAddr,
    names: Arc<Names>,
    connected: Arc<Mutex<Vec<IpAddr>>>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Net {
    fn new(table: &str, names: &[(&str, &[&[&str]])], answers: Vec<Vec<u8>>) -> Self {
        let known = names.iter().map(|(name, left)| {
            let left = left.iter().map(|one| one.iter().map(|address| address.parse().unwrap()).collect()).collect();
            ((*name).to_owned(), left)
        });
        Self::with(table, known.collect(), answers)
    }

    fn with(table: &str, names: BTreeMap<String, Vec<Vec<IpAddr>>>, answers: Vec<Vec<u8>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&requests);
        std::thread::spawn(move || {
            for answer in answers {
                let Ok((stream, _)) = listener.accept() else { return };
                serve(stream, &answer, &heard);
            }
        });
        let names = Arc::new(Names { answers: Mutex::new(names), asked: Mutex::default() });
        let connected = Arc::new(Mutex::new(Vec::new()));
        let routed = Arc::clone(&connected);
        let mut bench = Bench::new();
        let enforcer = enforcer(table, Mode::Ask);
        let (web, addresses) = (enforcer.clone(), enforcer);
        bench.settings.http.may_fetch = Arc::new(move |url, method| {
            let action = Action::Fetch { url: url.to_owned(), method: method.to_owned() };
            web.explain(&[action], jiff::Timestamp::UNIX_EPOCH)
        });
        bench.settings.http.may_connect = Arc::new(move |url, address| addresses.may_connect(url, address));
        let route = move |to: IpAddr| {
            routed.lock().unwrap().push(to);
            address
        };
        bench.settings.http.fetcher = Fetcher::for_test(Arc::clone(&names) as Arc<dyn Resolver>, Arc::new(route));
        Self { bench, address, names, connected, requests }
    }

    fn connected(&self) -> Vec<String> {
        self.connected.lock().unwrap().iter().map(ToString::to_string).collect()
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn enforcer(table: &str, mode: Mode) -> Enforcer {
    let text = format!("schema_version = 1\n[capabilities.\"Network.Http\"]\n{table}");
    let home = PathBuf::from("/home/user");
    let context =
        Context { roots: vec![home.join("ws")], home, mode, sandbox: Sandbox::Present, own: Vec::new(), skills: Vec::new() };
    Enforcer::new(vec![Layer::new(Scope::User, Bundle::parse(&text, "policy.toml").unwrap())], context)
}

/// Reads one request, responds to it, and closes the connection. If there is no response, the connection stays open
/// until the client closes it.
fn serve(mut stream: TcpStream, answer: &[u8], heard: &Mutex<Vec<String>>) {
    let mut request = Vec::new();
    let mut bytes = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&request).to_ascii_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse::<usize>().ok());
            if body.len() >= length.unwrap_or(0) {
                break;
            }
        }
        match stream.read(&mut bytes) {
            Ok(count) if count > 0 => request.extend_from_slice(&bytes[..count]),
            Ok(_) | Err(_) => break,
        }
    }
    heard.lock().unwrap().push(String::from_utf8_lossy(&request).into_owned());
    if answer.is_empty() {
        let _ = stream.read(&mut bytes);
        return;
    }
    let _ = stream.write_all(answer);
}

fn ok(kind: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn redirect(status: u16, location: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} Elsewhere\r\nLocation: {location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").into_bytes()
}

const A: (&str, &[&[&str]]) = ("a.example", &[&["93.184.216.34"]]);
const B: (&str, &[&[&str]]) = ("b.example", &[&["93.184.216.35"]]);

#[test]
fn responses_are_reported_with_status_and_text() {
    let net = Net::new(OPEN, &[A], vec![ok("text/plain; charset=iso-8859-1", b"gr\xfcn\n")]);
    let arguments = json!({"url": "http://a.example/x?y#z", "method": "post", "headers": {"X-One": "1"}, "body": "hello"});
    let text = net.bench.output("HttpRequest", arguments);
    assert_eq!(text, "HTTP 200 OK\nContent-Type: text/plain; charset=iso-8859-1\nContent-Length: 5\n\ngrün");
    let request = &net.requests()[0];
    assert!(request.starts_with("POST /x?y HTTP/1.1\r\n") && request.ends_with("\r\n\r\nhello"), "{request}");
    for header in ["x-one: 1", "host: a.example", concat!("user-agent: aye/", env!("CARGO_PKG_VERSION"))] {
        assert!(request.contains(&format!("{header}\r\n")), "{request}");
    }
    assert!(!request.contains("accept-encoding"), "{request}");
}

#[test]
fn binary_bodies_are_reported_by_size() {
    let packed = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\n\x1f\x8b\x08".to_vec();
    for (answer, last) in [
        (ok("image/png", b"PNG\0\x01?"), "Binary body, 6 bytes, image/png"),
        (ok("text/plain", b"a\0b"), "Binary body, 3 bytes, text/plain"),
        (ok("application/octet-stream", b"\xf0\xfe\xfd"), "Binary body, 3 bytes, application/octet-stream"),
        (ok("application/octet-stream", b"plain"), "plain"),
        (ok("application/json", "{\"ä\": 1}"), "{\"ä\": 1}"),
        (
            packed,
            "Compressed body (gzip), 3 bytes, unknown type; the data is corrupt: corrupt gzip stream does not have a matching checksum",
        ),
    ] {
        let net = Net::new(OPEN, &[A], vec![answer]);
        let text = net.bench.output("HttpRequest", json!({"url": "http://a.example/"}));
        assert_eq!(text.lines().last(), Some(last), "{text}");
    }
}

#[test]
fn long_bodies_are_truncated_with_a_note_and_oversized_ones_are_errors() {
    let mut net = Net::new(OPEN, &[A], vec![ok("text/plain", "ä".repeat(2_000))]);
    net.bench.settings.max_output_bytes = 1_001;
    let text = net.bench.output("HttpRequest", json!({"url": "http://a.example/"}));
    assert!(text.contains("\n\nää") && text.contains("ä\n[... truncated 3000 bytes ...]\nä"), "{text}");

    let most = 10 * 1024 * 1024;
    let announced = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", most + 1).into_bytes();
    let unannounced = [b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".as_slice(), &vec![b'x'; most + 1]].concat();
    let fits = Net::new(OPEN, &[A], vec![ok("text/plain", vec![b'x'; most])]);
    let text = fits.bench.output("HttpRequest", json!({"url": "http://a.example/"}));
    assert!(text.starts_with("HTTP 200 OK\nContent-Type: text/plain\nContent-Length: 10485760\n\nxx"), "{}", &text[..200]);
    for answer in [announced, unannounced] {
        let net = Net::new(OPEN, &[A], vec![answer]);
        let (code, message) = net.bench.error("HttpRequest", json!({"url": "http://a.example/"}));
        assert_eq!(code, ErrorCode::ToolExecutionFailed);
        assert!(message.starts_with("the response is larger than 10485760 bytes; request part"), "{message}");
    }
}

#[test]
fn invalid_requests_are_rejected_before_approval() {
    let bench = Bench::new();
    for (arguments, words) in [
        (json!({"url": "http://a.example/", "body": "x"}), "a GET request has no `body`"),
        (json!({"url": "http://a.example/", "method": "TRACE"}), "`method` is `TRACE`, expected one of GET"),
        (json!({"url": "http://a.example/", "timeout": 0}), "`timeout` is 0"),
        (json!({"url": "http://a.example/", "timeout": 301}), "`timeout` is 301"),
        (json!({"url": "http://a.example/", "headers": {"Host": "b"}}), "`Host` is set by aye"),
        (json!({"url": "http://a.example/", "headers": {"X": "a\r\nY: b"}}), "line breaks"),
        (json!({"url": "file:///etc/passwd"}), "start the URL with `https://`"),
        (json!({"url": "http://u:p@a.example/"}), "name or password"),
    ] {
        let error = bench.plan("HttpRequest", arguments.clone()).err().map(|error| (error.code, error.message));
        let (code, message) = error.unwrap_or_else(|| panic!("{arguments}"));
        assert!(code == ErrorCode::InvalidRequest && message.contains(words), "{arguments}: {message}");
    }
}

#[test]
fn approvals_show_everything_that_would_be_sent() {
    let arguments = json!({"url": "http://A.example:80/x#y", "method": "put", "headers": {"X-One": "1"}, "body": "a\nb"});
    let plan = Bench::new().plan("HttpRequest", arguments).unwrap();
    let proposal = plan.proposal.unwrap();
    assert_eq!((plan.summary.as_str(), proposal.summary.as_str()), ("PUT http://a.example/x", "PUT http://a.example/x"));
    assert_eq!(proposal.notes, ["X-One: 1", "body of 3 bytes:", "a\nb"]);
    assert!(plan.changes);
}

#[test]
fn dns_rebinding_connections_use_the_checked_address() {
    let names: &[(&str, &[&[&str]])] = &[("rebind.example", &[&["93.184.216.34"], &["127.0.0.1"]])];
    let net = Net::new(OPEN, names, vec![ok("text/plain", "x")]);
    net.bench.output("HttpRequest", json!({"url": "http://rebind.example/"}));
    assert_eq!((net.connected(), net.names.asked.lock().unwrap().len()), (vec!["93.184.216.34".to_owned()], 1));
    // The next redirect is resolved again, and gets the second address.
    let net = Net::new(OPEN, names, vec![redirect(302, "/again"), ok("text/plain", "x")]);
    let (code, message) = net.bench.error("HttpRequest", json!({"url": "http://rebind.example/"}));
    assert_eq!((code, net.connected()), (ErrorCode::PolicyDenied, vec!["93.184.216.34".to_owned()]));
    assert_eq!(message, "`rebind.example` resolves to `127.0.0.1`, a loopback address; only public hosts are allowed");
}

#[test]
fn one_private_address_among_public_ones_denies_the_request() {
    for inner in ["127.0.0.1", "::1", "169.254.169.254", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "fe80::1", "0.0.0.0"] {
        let answers: &[&[&str]] = &[&["93.184.216.34", inner]];
        let net = Net::new(OPEN, &[("mixed.example", answers)], vec![ok("text/plain", "x")]);
        let (code, _) = net.bench.error("HttpRequest", json!({"url": "http://mixed.example/"}));
        assert_eq!((code, net.connected().len()), (ErrorCode::PolicyDenied, 0), "{inner}");
    }
}

#[test]
fn private_hosts_allowed_by_the_user_are_contacted() {
    let mut net = Net::new(OPEN, &[], vec![ok("text/plain", "mine"), ok("text/plain", "mine")]);
    let port = net.address.port();
    let enforcer = enforcer(&format!("allowed_private_hosts = [\"127.0.0.1:{port}\", \"localhost:{port}\"]"), Mode::Ask);
    net.bench.settings.http.may_connect = Arc::new(move |url, address| enforcer.may_connect(url, address));
    net.bench.settings.http.fetcher = Fetcher::default();
    for host in ["127.0.0.1", "localhost"] {
        let text = net.bench.output("HttpRequest", json!({"url": format!("http://{host}:{port}/")}));
        assert!(text.ends_with("mine"), "{text}");
    }
}

#[test]
fn redirects_to_servers_that_need_approval_are_returned_to_the_model() {
    for to in ["http://b.example/x", "//b.example/x"] {
        let net = Net::new(ASKS, &[A, B], vec![redirect(302, to)]);
        let text = net.bench.output("HttpRequest", json!({"url": "http://a.example/"}));
        assert!(
            text.starts_with(&format!("HTTP 302 Found\nContent-Length: 0\nLocation: {to}\n[redirect not followed")),
            "{text}"
        );
        assert!(text.contains("request http://b.example/x if you need it"), "{text}");
        assert_eq!(net.connected(), ["93.184.216.34"]);
    }
}

#[test]
fn redirects_on_the_same_server_need_no_second_approval() {
    let net = Net::new(ASKS, &[A], vec![redirect(301, "/b"), redirect(303, "http://a.example/c"), ok("text/plain", "here")]);
    let arguments =
        json!({"url": "http://a.example/", "method": "POST", "headers": {"Authorization": "Bearer x"}, "body": "secret"});
    let text = net.bench.output("HttpRequest", arguments);
    assert!(text.contains("[redirected to http://a.example/c]\n\nhere"), "{text}");
    let requests = net.requests();
    assert!(requests[1].starts_with("GET /b ") && !requests[1].contains("secret") && requests[1].contains("authorization"));
}

#[test]
fn a_redirect_that_a_rule_denies_ends_the_request() {
    for to in [
        "http://127.0.0.1/",
        "http:\\\\127.0.0.1\\",
        "//169.254.169.254/",
        "http://0x7f.1/",
        "http://u:p@b.example/",
        "ftp://b.example/",
    ] {
        let net = Net::new(OPEN, &[A, B], vec![redirect(307, to), ok("text/plain", "x")]);
        let (code, message) = net.bench.error("HttpRequest", json!({"url": "http://a.example/"}));
        assert_eq!((code, net.requests().len()), (ErrorCode::PolicyDenied, 1), "{to}: {message}");
        assert!(message.starts_with("the redirect "), "{message}");
    }
    let net =
        Net::new("allowed_domains = [\"a.example\"]", &[A, B], vec![redirect(307, "http://b.example/"), ok("text/plain", "x")]);
    let (code, message) = net.bench.error("HttpRequest", json!({"url": "http://a.example/"}));
    assert_eq!((code, net.requests().len()), (ErrorCode::PolicyDenied, 1));
    assert!(message.starts_with("the redirect to `http://b.example/` is denied: ") && message.contains(" (rule: "), "{message}");
}

#[test]
fn redirects_are_limited() {
    let net = Net::new(OPEN, &[A], (0..7).map(|step| redirect(302, &format!("/{step}"))).collect());
    let (code, message) = net.bench.error("HttpRequest", json!({"url": "http://a.example/"}));
    assert_eq!((code, net.requests().len()), (ErrorCode::ToolExecutionFailed, 6));
    assert!(message.starts_with("more than 5 redirects"), "{message}");
}

#[test]
fn five_redirects_are_followed() {
    let answers = (0..5).map(|step| redirect(302, &format!("/{step}"))).chain([ok("text/plain", "here")]).collect();
    let net = Net::new(OPEN, &[A], answers);
    let text = net.bench.output("HttpRequest", json!({"url": "http://a.example/"}));
    assert!(text.ends_with("[redirected to http://a.example/4]\n\nhere"), "{text}");
}

#[test]
fn pages_are_converted_on_request_or_by_tool_name() {
    let page = "<html><meta charset='iso-8859-1'><h1>Hi</h1><p>gr\u{fc}n <a href=x>x</a>";
    let latin: Vec<u8> = page.chars().map(|letter| u8::try_from(u32::from(letter)).unwrap()).collect();
    let readable = "# Hi\n\ngrün [x](http://a.example/x)";
    for (tool, format, last) in [
        ("HttpRequest", None, page),
        ("HttpRequest", Some("raw"), page),
        ("HttpRequest", Some("text"), "Hi\n\ngrün x"),
        ("HttpRequest", Some("markdown"), readable),
        ("web_fetch", None, readable),
        ("webfetch", Some("html"), page),
        ("http_request", None, page),
    ] {
        let net = Net::new(OPEN, &[A], vec![ok("text/html", &latin)]);
        let mut arguments = json!({"url": "http://a.example/"});
        if let Some(format) = format {
            arguments["format"] = format.into();
        }
        let text = net.bench.output(tool, arguments);
        assert_eq!(text.split_once("\n\n").unwrap().1, last, "{tool} {format:?}");
    }
    let net = Net::new(OPEN, &[A], vec![ok("application/json", "{\"a\": \"<b>\"}")]);
    let text = net.bench.output("web_fetch", json!({"url": "http://a.example/"}));
    assert!(text.ends_with("\n\n{\"a\": \"<b>\"}"), "other content is unchanged: {text}");
}

#[test]
fn requests_to_silent_servers_end_by_timeout_or_cancellation() {
    let net = Net::new(OPEN, &[A], vec![Vec::new()]);
    let (code, message) = net.bench.error("HttpRequest", json!({"url": "http://a.example/", "timeout": 1}));
    assert_eq!(
        (code, message.as_str()),
        (ErrorCode::ToolExecutionTimeout, "no complete response within 1 s; if it needs longer, set `timeout` (at most 300)")
    );

    let net = Net::new(OPEN, &[A], vec![Vec::new()]);
    let plan = net.bench.plan("HttpRequest", json!({"url": "http://a.example/"})).unwrap();
    let permit = Permit::for_test(plan.actions.clone());
    let context = context();
    context.kill.cancel();
    let result = block_on(net.bench.router().run(plan, permit, context));
    assert_eq!(result.error.unwrap().code, ErrorCode::Cancelled);
}

#[test]
fn unresolvable_names_are_reported_with_a_hint() {
    let net = Net::new(OPEN, &[], Vec::new());
    let (code, message) = net.bench.error("HttpRequest", json!({"url": "http://nowhere.example/"}));
    assert_eq!(code, ErrorCode::ToolExecutionFailed);
    assert_eq!(message, "cannot resolve `nowhere.example`: no such name; check the spelling of the host name");
}

#[test]
fn https_requests_use_the_checked_address_too() {
    // The test server has no TLS, so the request gets no further than the connection.
    let net = Net::new(OPEN, &[A], vec![ok("text/plain", "x")]);
    let (code, message) = net.bench.error("HttpRequest", json!({"url": "https://a.example/"}));
    assert_eq!((code, net.connected()), (ErrorCode::ToolExecutionFailed, vec!["93.184.216.34".to_owned()]), "{message}");
}

#[derive(Deserialize)]
struct Case {
    id: String,
    url: String,
    expected: String,
    needs_resolver: bool,
    #[serde(default)]
    resolver: BTreeMap<String, Vec<Vec<IpAddr>>>,
    #[serde(default)]
    redirects: Vec<String>,
    must_connect_to: Option<String>,
    #[serde(default)]
    must_drop_headers: Vec<String>,
    #[serde(default)]
    also_ok: Vec<String>,
    why: String,
}

/// Adapts a URL to the test server, which has no TLS and a port of its own.
fn plain(url: &str, port: u16) -> String {
    url.replacen("https://", "http://", 1).replace(":6379", &format!(":{port}"))
}

#[test]
#[cfg_attr(not(aye_shared), ignore = "needs the shared test material: set AYE_SHARED")]
fn the_url_corpus_with_resolver_cases_gets_the_labelled_verdicts() {
    let text = fs::read_to_string(shared!("corpora/urls.jsonl")).unwrap();
    let mut wrong = Vec::new();
    for case in text.lines().map(|line| serde_json::from_str::<Case>(line).unwrap()).filter(|case| case.needs_resolver) {
        let mut answers: Vec<_> = case.redirects.iter().map(|to| redirect(302, &to.replacen("https://", "http://", 1))).collect();
        answers.push(ok("text/plain", "reached"));
        let net = Net::with(OPEN, case.resolver, answers);
        let headers: BTreeMap<_, _> = ["Authorization", "Cookie", "X-Api-Key"].map(|name| (name, "mine")).into();
        let result = net.bench.call("HttpRequest", json!({"url": plain(&case.url, net.address.port()), "headers": headers}));
        let label = match result.error.as_ref().map(|error| error.code) {
            None => "allow",
            Some(ErrorCode::PolicyDenied | ErrorCode::InvalidRequest) => "block",
            Some(_) => "failed",
        };
        if label != case.expected && !case.also_ok.iter().any(|also| also == label) {
            wrong.push(format!("{}: {label}, not {} ({}): {result:?}", case.id, case.expected, case.why));
        }
        let connected = net.connected();
        if case.must_connect_to.is_some_and(|only| connected.iter().any(|to| *to != only)) {
            wrong.push(format!("{}: connected to {connected:?}", case.id));
        }
        if !case.must_drop_headers.is_empty() {
            let last = net.requests().pop().unwrap_or_default().to_ascii_lowercase();
            let kept = case.must_drop_headers.iter().any(|name| last.contains(&format!("\n{name}:")));
            if kept || last.contains("x-api-key") {
                wrong.push(format!("{}: a header went along: {last}", case.id));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn cve_2025_54132_linked_resources_are_not_fetched() {
    let page = "<img src=\"http://b.example/?d=1\"><link rel=preload href=http://b.example/2>![x](http://b.example/3)";
    let net = Net::new(OPEN, &[A, B], vec![ok("text/html", page), ok("text/plain", "x")]);
    let text = net.bench.output("HttpRequest", json!({"url": "http://a.example/"}));
    assert!(text.ends_with(page));
    assert_eq!((net.requests().len(), net.names.asked.lock().unwrap().as_slice()), (1, ["a.example".to_owned()].as_slice()));
}

#[test]
fn http_calls_are_evaluated_without_network_access() {
    let tools = Toolset::new(settings("/no/such/ws".into(), "/home/me".into()), ToolSources::default());
    for (arguments, expected) in [
        (json!({"url": "https://docs.rs/"}), VerdictKind::Allow),
        (json!({"url": "https://docs.rs/", "method": "delete"}), VerdictKind::Allow),
        (json!({"url": "http://127.0.0.1/"}), VerdictKind::Deny),
        (json!({"url": "docs.rs"}), VerdictKind::Deny),
        (json!({"url": "http://docs.rs:25/"}), VerdictKind::Ask),
    ] {
        let actions = tools.actions_for("HttpRequest", &call("HttpRequest", arguments.clone()).arguments).unwrap();
        assert_eq!(enforcer(OPEN, Mode::Ask).explain(&actions, jiff::Timestamp::UNIX_EPOCH).verdict, expected, "{arguments}");
    }
}
