use super::*;

#[test]
fn plain_http_is_for_this_machine_only() {
    for good in
        ["http://127.0.0.1:8080", "http://localhost:1/v1/", "http://[::1]:9", "https://api.example.com", "http://127.9.9.9"]
    {
        assert!(Server::new(good, Timeouts::default()).is_ok(), "{good}");
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
        assert!(matches!(Server::new(bad, Timeouts::default()), Err(HttpError::Address { .. })), "{bad}");
    }
}

#[test]
fn a_server_is_named_by_host_and_port() {
    let name = |base| Server::new(base, Timeouts::default()).map(|server| server.name);
    assert_eq!(name("https://api.example.com/v1"), Ok("api.example.com".to_owned()));
    assert_eq!(name("http://127.0.0.1:81/v1"), Ok("127.0.0.1:81".to_owned()));
}
