//! Tests of tunnels, which must carry TLS to the allowed server and nothing else.

use super::*;
use rustls::pki_types::ServerName;

/// Returns the first flight of a TLS client that requests `name`.
fn hello(name: &str) -> Vec<u8> {
    let config = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut connection = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut bytes = Vec::new();
    connection.write_tls(&mut bytes).unwrap();
    bytes
}

/// Echoes all data, then sends `end` once the stream has ended.
async fn echo(mut stream: TcpStream) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(count) = stream.read(&mut buffer).await {
        if count == 0 {
            break;
        }
        if stream.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
    let _ = stream.write_all(b"end").await;
}

async fn tunnel(net: &Net, target: &str) -> TcpStream {
    let mut stream = net.connect().await;
    stream.write_all(format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n").as_bytes()).await.unwrap();
    let head = until(&mut stream, "\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    stream
}

/// Returns all bytes that arrive before the stream ends.
async fn bytes(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    bytes
}

#[tokio::test]
async fn tls_greetings_for_the_target_pass_in_any_chunks_and_half_closing_works() {
    let net = Net::new(echo).await;
    for (target, name) in [("a.example:443", "a.example"), ("A.EXAMPLE:443", "a.example"), ("93.184.216.34:443", PUBLIC)] {
        for piece in [1, 100, 100_000] {
            let mut stream = tunnel(&net, target).await;
            let sent = [hello(name), b"more".to_vec()].concat();
            for part in sent.chunks(piece) {
                stream.write_all(part).await.unwrap();
            }
            stream.shutdown().await.unwrap();
            assert_eq!(bytes(&mut stream).await, [sent, b"end".to_vec()].concat(), "{target} {piece}");
        }
    }
    assert_eq!(net.refused(), Vec::<String>::new());
}

#[tokio::test]
async fn data_sent_before_the_connect_response_is_checked() {
    let net = Net::new(echo).await;
    for (first, passes) in [(hello("a.example"), true), (hello("b.example"), false), (b"SSH-2.0-x\r\n".to_vec(), false)] {
        let mut stream = net.connect().await;
        stream.write_all(&[b"CONNECT a.example:443 HTTP/1.1\r\n\r\n".as_slice(), &first].concat()).await.unwrap();
        stream.shutdown().await.unwrap();
        let answer = bytes(&mut stream).await;
        assert_eq!(answer.ends_with(b"end"), passes, "{}", String::from_utf8_lossy(&answer));
    }
}

#[tokio::test]
async fn domain_fronting_greetings_for_other_servers_get_a_tls_alert() {
    let net = Net::new(echo).await;
    for (target, name) in [("a.example:443", "b.example"), ("a.example:443", "x.a.example"), ("93.184.216.34:443", "b.example")] {
        let mut stream = tunnel(&net, target).await;
        stream.write_all(&hello(name)).await.unwrap();
        assert_eq!(bytes(&mut stream).await, [21, 3, 3, 0, 2, 2, 49], "{target} {name}");
    }
    assert_eq!(net.refused(), ["b.example:443", "x.a.example:443"]);
    assert!(net.denied.list().iter().all(|denied| !denied.can_open));
}

#[tokio::test]
async fn non_tls_tunnels_are_rejected_with_a_message() {
    let heard = Heard::default();
    let net = Net::new(heard.server("")).await;
    let oversized = [b"\x16\x03\x01\x40\x00\x01\xff\xff\xff".as_slice(), &vec![0; 100_000]].concat();
    let cases: [&[u8]; 4] = [b"SSH-2.0-OpenSSH_9\r\n", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00\x05hello", &oversized];
    for case in cases {
        let mut stream = tunnel(&net, "a.example:443").await;
        let _ = stream.write_all(case).await;
        let answer = bytes(&mut stream).await;
        // Unread extra data resets the connection.
        assert!(answer.is_empty() || answer.starts_with(b"aye: a tunnel accepts only"), "{}", String::from_utf8_lossy(&answer));
    }
    assert_eq!(heard.all().concat(), "");
    assert_eq!(net.denied.list()[0].reason, "a tunnel accepts only TLS, but the client sent other data");
}

#[tokio::test]
async fn an_unreachable_server_is_reported() {
    let net = Net::new(echo).await;
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let names = Names(Mutex::new(vec![PUBLIC.parse().unwrap()]));
    let gate = Arc::new(Listed(vec![("a.example".to_owned(), 443)]));
    let proxy = Proxy { gate, fetcher: Fetcher::for_test(Arc::new(names), Arc::new(move |_| gone)) };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let _serving = tokio::spawn(proxy.serve(listener, net.denied.clone()));
    let text = Net { proxy: address, ..net }.ask("CONNECT a.example:443 HTTP/1.1\r\n\r\n").await;
    assert!(text.starts_with("HTTP/1.1 502 Unreachable (aye)\r\n"), "{text}");
    assert!(text.contains("cannot reach `a.example:443`") && text.contains("does not use an upstream proxy"), "{text}");
}
