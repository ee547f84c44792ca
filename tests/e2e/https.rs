//! Encrypted connections to a provider, with the certificate authorities and the proxy of a company.

use crate::support::Project;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;

const MODEL: &str = "anthropic/scripted";
const RESPONSE: &str = "\
data: {\"type\":\"message_start\",\"message\":{\"id\":\"a\",\"usage\":{\"input_tokens\":3}}}\n\n\
data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"hello there\"}}\n\n\
data: {\"type\":\"content_block_stop\",\"index\":0}\n\n\
data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\n\
data: {\"type\":\"message_stop\"}\n\n";

fn case(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cases/tls").join(name)
}

/// Starts a provider with a certificate of the test authority for `127.0.0.1` and `models.example.com`. Returns its
/// port.
fn provider() -> u16 {
    let certificates = CertificateDer::pem_file_iter(case("server.pem")).unwrap().collect::<Result<Vec<_>, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_file(case("server.key")).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            thread::spawn(move || respond(rustls::StreamOwned::new(connection, socket)));
        }
    });
    port
}

/// Responds to one request. A client that rejects the certificate sends no request.
fn respond(mut stream: rustls::StreamOwned<rustls::ServerConnection, TcpStream>) {
    if read_head(&mut stream).is_none() {
        return;
    }
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n";
    let _ = write!(stream, "{head}content-length: {}\r\n\r\n{RESPONSE}", RESPONSE.len());
    stream.conn.send_close_notify();
    let _ = stream.flush();
}

/// Reads a request with its body. Returns its head, or `None` if the connection ends early.
fn read_head(stream: &mut impl Read) -> Option<String> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse::<usize>().ok());
            if body.len() >= length.unwrap_or(0) {
                return Some(head.to_owned());
            }
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
        }
    }
}

/// Starts a proxy that connects every tunnel to `port`. Returns its port and the heads of the requests that it
/// receives.
fn proxy(port: u16) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    let heads = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&heads);
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let Some(head) = read_head(&mut client) else { continue };
            let is_known = head.to_lowercase().contains("proxy-authorization: basic");
            record.lock().unwrap().push(head);
            if !is_known {
                let _ = client.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n");
                continue;
            }
            let server = TcpStream::connect(("127.0.0.1", port)).unwrap();
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
            for (mut from, mut to) in
                [(client.try_clone().unwrap(), server.try_clone().unwrap()), (server.try_clone().unwrap(), client)]
            {
                thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(std::net::Shutdown::Write);
                });
            }
        }
    });
    (own, heads)
}

fn project(address: &str) -> Project {
    Project::empty().env("ANTHROPIC_API_KEY", "sk-ant-scripted").env("ANTHROPIC_BASE_URL", address)
}

fn with_bundle(project: Project) -> Project {
    project.config(&format!("[http]\nca_bundle = \"{}\"\n[llm]\nmax_retries = 0\n", case("ca.pem").display()))
}

#[test]
fn a_custom_certificate_authority_is_trusted_if_configured() {
    let address = format!("https://127.0.0.1:{}", provider());
    let output = with_bundle(project(&address)).aye(&["exec", "-m", MODEL, "hello"]).exits(0);
    assert!(output.stdout.contains("hello there"), "{}", output.stdout);
    let variable = project(&address).env("SSL_CERT_FILE", &case("ca.pem").display().to_string());
    variable.aye(&["exec", "-m", MODEL, "hello"]).exits(0);
    let unknown = project(&address).config("[llm]\nmax_retries = 0\n");
    let output = unknown.aye(&["exec", "-m", MODEL, "hello"]);
    assert_ne!(output.code, 0);
    output.says(&["TLS: invalid peer certificate", "http.ca_bundle"]);
    let doctor = with_bundle(project(&address)).aye(&["doctor"]);
    assert!(doctor.stdout.contains("1 authority from"), "{}", doctor.stdout);
}

#[test]
fn an_unusable_ca_bundle_is_reported_by_name() {
    let address = format!("https://127.0.0.1:{}", provider());
    for (content, says) in [
        (None, "No such file"),
        (Some("hello"), "no certificate"),
        (Some("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), "certificate 1 is not usable"),
        (Some("-----BEGIN CERTIFICATE-----\nAAAA\n"), "certificate 1 is not valid PEM"),
    ] {
        let project = project(&address).config("[http]\nca_bundle = \"corporate.pem\"\n");
        if let Some(content) = content {
            std::fs::write(project.directory("config").join("corporate.pem"), content).unwrap();
        }
        let output = project.aye(&["exec", "-m", MODEL, "hello"]);
        assert_ne!(output.code, 0, "{content:?}");
        output.says(&["corporate.pem", says, "http.ca_bundle"]);
        let doctor = project.aye(&["doctor"]);
        assert!(doctor.stdout.contains("✗ certificates") && doctor.stdout.contains(says), "{}", doctor.stdout);
    }
}

#[test]
fn requests_go_through_the_proxy_and_its_password_stays_secret() {
    let port = provider();
    let (own, heads) = proxy(port);
    let through = |url: &str| with_bundle(project("https://models.example.com")).env("HTTPS_PROXY", url);
    let secret = "pa-ss+4711-word";
    let url = format!("http://me:pa-ss%2B4711-word@127.0.0.1:{own}");
    let output = through(&url).aye(&["exec", "-m", MODEL, &format!("the password is {secret}")]).exits(0);
    assert!(output.stdout.contains("hello there"), "{}", output.stdout);
    let seen = heads.lock().unwrap().clone();
    // Base64 of `me:pa-ss+4711-word`.
    assert!(
        seen[0].starts_with("CONNECT models.example.com:443") && seen[0].contains("Basic bWU6cGEtc3MrNDcxMS13b3Jk"),
        "{seen:?}"
    );
    let refused = through(&format!("http://127.0.0.1:{own}")).aye(&["exec", "-m", MODEL, "hello"]);
    assert_ne!(refused.code, 0);
    refused.says(&["through the proxy", "HTTPS_PROXY"]);
    // Nothing listens on this port.
    let dead = "http://me:pa-ss%2B4711-word@127.0.0.1:1";
    let failed = through(dead).aye(&["exec", "-m", MODEL, "hello"]);
    assert!(failed.code != 0 && !failed.stderr.contains("4711"), "{}", failed.stderr);
    failed.says(&["through the proxy `127.0.0.1:1`", "Connection refused"]);
    let direct = with_bundle(project(&format!("https://127.0.0.1:{port}"))).env("HTTPS_PROXY", dead).env("NO_PROXY", "127.0.0.1");
    direct.aye(&["exec", "-m", MODEL, "hello"]).exits(0);
}
