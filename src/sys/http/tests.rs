use super::*;

#[test]
fn plain_http_is_allowed_only_for_this_machine() {
    for good in
        ["http://127.0.0.1:8080", "http://localhost:1/v1/", "http://[::1]:9", "https://api.example.com", "http://127.9.9.9"]
    {
        assert!(HttpServer::new(good, Timeouts::default()).is_ok(), "{good}");
    }
    for bad in [
        "http://example.com",
        "http://10.0.0.1",
        "http://localhost.example.com",
        "ftp://localhost",
        "localhost:80",
        "",
        "https://",
        "https://a.example/?x",
        "https://me:secret@a.example/",
    ] {
        assert!(matches!(HttpServer::new(bad, Timeouts::default()), Err(HttpError::Address { .. })), "{bad}");
    }
}

#[test]
fn a_server_is_named_by_host_and_port() {
    let name = |base| HttpServer::new(base, Timeouts::default()).map(|server| server.name);
    assert_eq!(name("https://api.example.com/v1"), Ok("api.example.com".to_owned()));
    assert_eq!(name("http://127.0.0.1:81/v1"), Ok("127.0.0.1:81".to_owned()));
}

/// A resolver error, wrapped as in the HTTP client.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
struct Around {
    what: &'static str,
    source: std::io::Error,
}

#[test]
fn connection_errors_name_the_failing_layer() {
    use std::io::{Error, ErrorKind};
    let around = |what, source| root_cause(&Around { what, source });
    let resolver = Error::other("failed to lookup address information: Name or service not known");
    assert_eq!(around("dns error", resolver), "DNS: Name or service not known");
    assert_eq!(around("tcp connect error", Error::from_raw_os_error(111)), "Connection refused");
    let plain = rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType);
    // A system error inside another one, as lower layers return it.
    let odd = Error::other(Error::new(ErrorKind::InvalidData, plain));
    assert_eq!(around("client error (Connect)", odd), "TLS: the server does not speak TLS");
    let expired = rustls::Error::InvalidCertificate(rustls::CertificateError::Expired);
    let words = around("client error (Connect)", Error::new(ErrorKind::InvalidData, expired));
    assert!(words.starts_with("TLS: invalid peer certificate"), "{words}");
}
