//! Tests of plain requests: targets, headers, and ambiguous requests.

use super::*;

const GET: &str = "GET http://a.example/x?y HTTP/1.1\r\nHost: a.example\r\n";

#[tokio::test]
async fn proxy_and_hop_by_hop_headers_are_not_forwarded() {
    let heard = Heard::default();
    let answer = "HTTP/1.1 200 OK\r\nKeep-Alive: 5\r\nX-Kept: 1\r\nConnection: X-Gone, keep-alive\r\nX-Gone: 1\r\nContent-Length: 2\r\n\r\nok";
    let net = Net::new(heard.server(answer)).await;
    let own = "Proxy-Authorization: Basic x\r\nProxy-Connection: keep-alive\r\nTE: trailers\r\nUpgrade: websocket\r\nX-Mine: 1\r\nX-Own: 2\r\n";
    let text = net.ask(format!("{GET}{own}Connection: upgrade, x-own, close\r\n\r\n")).await;
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("\r\n\r\nok"), "{text}");
    let lower = text.to_ascii_lowercase();
    assert!(lower.contains("x-kept: 1") && !lower.contains("x-gone") && !lower.contains("keep-alive: 5"), "{text}");
    let request = &heard.all()[0];
    assert!(request.starts_with("GET /x?y HTTP/1.1\r\n") && request.contains("x-mine: 1"), "{request}");
    for gone in ["proxy-", "te:", "upgrade", "x-own", "connection"] {
        assert!(!request.contains(gone), "{gone}: {request}");
    }
    assert_eq!(request.matches("host: a.example\r\n").count(), 1, "{request}");
}

#[tokio::test]
async fn each_request_on_a_connection_is_checked() {
    let heard = Heard::default();
    let net = Net::new(heard.server(FINE)).await;
    let second = "GET http://b.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n";
    let text = net.ask(format!("{GET}\r\n{second}")).await;
    let (first, second) = text.split_once("ok").unwrap();
    assert!(
        first.starts_with("HTTP/1.1 200") && second.starts_with("HTTP/1.1 403 Not allowed for this command (aye)\r\n"),
        "{text}"
    );
    assert!(second.ends_with("aye: b.example:80 is not listed\n"), "{text}");
    assert_eq!((net.refused(), net.connections()), (vec!["b.example:80".to_owned()], 1));
}

#[tokio::test]
async fn denied_hosts_are_recorded_once_up_to_a_limit() {
    let net = Net::new(Heard::default().server(FINE)).await;
    for number in 0..80 {
        for _ in 0..2 {
            let text = net.ask(format!("CONNECT h{}.example:443 HTTP/1.1\r\n\r\n", number % 70)).await;
            assert!(text.starts_with("HTTP/1.1 403"), "{text}");
        }
    }
    assert_eq!((net.refused().len(), net.connections()), (MAX_DENIED, 0));
}

#[tokio::test]
async fn malformed_and_ambiguous_requests_are_not_forwarded() {
    let long = format!("{GET}X: {}\r\n\r\n", "x".repeat(100_000));
    let many = format!("{GET}{}\r\n", "X: y\r\n".repeat(300));
    let cases: &[&str] = &[
        "\r\n\r\n\0\0\0",
        "\x16\x03\x01\x02\x00\x01\x00",
        "SSH-2.0-OpenSSH_9\r\n\r\n",
        "\x05\x01\x00",
        "GET http://a.example/\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n",
        "GET * HTTP/1.1\r\nHost: a.example\r\n\r\n",
        "GET //a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
        "GET https://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
        "GET ftp://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
        "GET http://user@a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
        "GET http://a.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n",
        "GET http://a.example/ HTTP/1.1\r\nHost: a.example:8080\r\n\r\n",
        "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\n\r\n",
        "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nHost: a.example\r\n\r\n",
        "GET http://a.example/ HTTP/1.1\r\nHost : a.example\r\n\r\n",
        "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n folded: x\r\n\r\n",
        "GET http://a.example\0.b.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
        "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: +5\r\n\r\nhello",
        "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        "CONNECT a.example HTTP/1.1\r\n\r\n",
        "CONNECT user@a.example:443 HTTP/1.1\r\n\r\n",
        "CONNECT http://a.example:443/ HTTP/1.1\r\n\r\n",
        "CONNECT a.example:443 HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
        "CONNECT a.example:443 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "CONNECT a.example:99999 HTTP/1.1\r\n\r\n",
        "CONNECT :443 HTTP/1.1\r\n\r\n",
        &long,
        &many,
    ];
    let heard = Heard::default();
    let net = Net::new(heard.server(FINE)).await;
    for case in cases {
        let mut stream = net.connect().await;
        let _ = stream.write_all(case.as_bytes()).await;
        let _ = stream.shutdown().await;
        let text = all(&mut stream).await;
        assert!(text.is_empty() || text.starts_with("HTTP/1.1 4"), "{:?}: {text}", &case[..case.len().min(120)]);
        assert_eq!((heard.all(), net.connections()), (Vec::new(), 0), "{:?}", &case[..case.len().min(120)]);
    }
}

#[tokio::test]
async fn request_smuggling_requests_hidden_by_two_lengths_reach_no_server() {
    let inner = "GET http://b.example/hidden HTTP/1.1\r\nHost: b.example\r\n\r\n";
    let bodies = [
        format!("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{inner}"),
        format!("Transfer-Encoding: chunked\r\nContent-Length: {}\r\n\r\n0\r\n\r\n{inner}", 5 + inner.len()),
        format!("Transfer-Encoding: xchunked\r\nContent-Length: 2\r\n\r\nhi{inner}"),
        format!("Connection: Content-Length\r\nContent-Length: 2\r\n\r\nhi{inner}"),
        format!("Connection: Host\r\nContent-Length: 2\r\n\r\nhi{inner}"),
    ];
    for body in bodies {
        let heard = Heard::default();
        let net = Net::new(heard.server(FINE)).await;
        let mut stream = net.connect().await;
        stream.write_all(format!("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\n{body}").as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let _ = all(&mut stream).await;
        for request in heard.all() {
            let lengths = request.contains("content-length") && request.contains("transfer-encoding");
            assert!(!request.contains("hidden") && !lengths && request.contains("host: a.example"), "{body}: {request}");
        }
        assert!(net.connections() <= 1, "{body}");
    }
}

#[tokio::test]
async fn hosts_are_compared_ignoring_case_and_default_ports() {
    let heard = Heard::default();
    let net = Net::new(heard.server(FINE)).await;
    for line in [
        "GET http://A.Example:80/ HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n",
        "GET http://a.example HTTP/1.1\r\nHost: a.EXAMPLE:80\r\nConnection: close\r\n\r\n",
        "GET http://a.example:8080/ HTTP/1.1\r\nHost: a.example:8080\r\nConnection: close\r\n\r\n",
        "GET http://a.example/ HTTP/1.0\r\n\r\n",
    ] {
        let text = net.ask(line).await;
        assert!(text.ends_with("\r\n\r\nok"), "{line}: {text}");
    }
    let hosts: Vec<_> = heard.all().iter().map(|request| request.matches("host: a.example").count()).collect();
    assert_eq!(hosts, [1, 1, 1, 1]);
}

#[tokio::test]
async fn dns_rebinding_connections_use_the_checked_address() {
    let net = Net::with(&[PUBLIC, "127.0.0.1"], Heard::default().server(FINE)).await;
    let text = net.ask(format!("{GET}\r\n{GET}\r\n")).await;
    let (first, second) = text.split_once("ok").unwrap();
    assert!(first.starts_with("HTTP/1.1 200") && second.starts_with("HTTP/1.1 403"), "{text}");
    assert!(second.contains("`a.example:80` leads to `127.0.0.1`"), "{text}");
    assert_eq!(net.connections(), 1);
    let denied = net.denied.list();
    assert_eq!((denied.len(), denied[0].can_open), (1, false), "{denied:?}");
}

#[tokio::test]
async fn the_proxy_passes_redirects_to_the_client() {
    let answer = "HTTP/1.1 302 Found\r\nLocation: http://b.example/\r\nContent-Length: 0\r\n\r\n";
    let net = Net::new(Heard::default().server(answer)).await;
    let text = net.ask(format!("{GET}Connection: close\r\n\r\n")).await;
    assert!(text.starts_with("HTTP/1.1 302 Found\r\n") && text.contains("http://b.example/"), "{text}");
    assert_eq!(net.connections(), 1);
}

#[tokio::test]
async fn a_body_of_one_gigabyte_is_streamed() {
    const UP: u64 = 128 * 1024 * 1024;
    const DOWN: u64 = 1024 * 1024 * 1024;
    // The server reads the whole body before it responds.
    let net = Net::new(|mut stream: TcpStream| async move {
        until(&mut stream, "\r\n\r\n").await;
        let mut buffer = vec![0; 64 * 1024];
        let mut left = UP;
        while left > 0 {
            let count = stream.read(&mut buffer).await.unwrap();
            assert!(count > 0, "the body ends early");
            left -= count as u64;
        }
        let _ = stream.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {DOWN}\r\n\r\n").as_bytes()).await;
        for _ in 0..DOWN / (64 * 1024) {
            stream.write_all(&buffer).await.unwrap();
        }
    })
    .await;
    let mut stream = net.connect().await;
    let head = format!("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: {UP}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut buffer = vec![0; 64 * 1024];
    for _ in 0..UP / (64 * 1024) {
        stream.write_all(&buffer).await.unwrap();
    }
    assert!(until(&mut stream, "\r\n\r\n").await.starts_with("HTTP/1.1 200"));
    let mut total = 0;
    while let Ok(count) = stream.read(&mut buffer).await {
        if count == 0 {
            break;
        }
        total += count as u64;
    }
    assert_eq!(total, DOWN);
}
