use super::*;

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

#[test]
fn headers_with_line_breaks_and_connection_headers_are_rejected() {
    for good in [pair("Accept", "text/html"), pair("X-Api-Key", "a b"), pair("Authorization", "Bearer x")] {
        assert_eq!(check_headers(std::slice::from_ref(&good)), Ok(()), "{good:?}");
    }
    for bad in [
        pair("X", "a\r\nHost: b"),
        pair("X", "a\nb"),
        pair("X", "a\0"),
        pair("X\r\nY", "a"),
        pair("X Y", "a"),
        pair("", "a"),
        pair("Host", "b"),
        pair("Content-Length", "0"),
        pair("transfer-encoding", "chunked"),
        pair("Connection", "upgrade"),
        pair("Accept-Encoding", "gzip"),
    ] {
        assert!(matches!(check_headers(std::slice::from_ref(&bad)), Err(FetchError::Invalid(_))), "{bad:?}");
    }
}

fn hop(method: Method) -> Hop {
    let given = ["Accept", "Authorization", "Cookie", "Proxy-Authorization", "X-Api-Key", "Content-Type", "Private-Token"];
    Hop {
        url: Url::parse("https://a.example/").unwrap(),
        method,
        headers: headers(&given.map(|name| pair(name, "v"))).unwrap(),
        body: Some("text".to_owned()),
    }
}

#[test]
fn ghsa_rjxq_qqhf_8hwh_redirects_to_other_origins_drop_custom_headers() {
    for to in ["https://b.example/", "http://a.example/", "https://a.example:8443/", "https://a.example.evil.test/"] {
        let next = next_request(hop(Method::GET), Url::parse(to).unwrap(), Method::GET);
        let mut names: Vec<_> = next.headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["accept", "content-type"], "{to}");
    }
    let next = next_request(hop(Method::GET), Url::parse("https://a.example/next").unwrap(), Method::GET);
    assert_eq!(next.headers.len(), 7);
}

#[test]
fn a_redirect_keeps_the_body_only_if_the_method_stays() {
    let same = next_request(hop(Method::POST), Url::parse("https://a.example/2").unwrap(), Method::POST);
    assert_eq!(same.body.as_deref(), Some("text"));
    let other = next_request(hop(Method::POST), Url::parse("https://a.example/2").unwrap(), Method::GET);
    assert_eq!((other.body, other.headers.get("content-type")), (None, None));
}
