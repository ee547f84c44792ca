//! Signature Version 4, with which requests to AWS are authenticated.
//!
//! The steps are those of the AWS documentation: a canonical form of the request, a string to sign that contains its
//! hash, and a key derived from the secret for one day, region and service. The `aws-sigv4` crate does the same, but
//! has about twelve additional dependencies.

use super::{AwsCredentials, UnsignedRequest};
use crate::sys::http::Headers;
use crate::text::hex;
use jiff::Timestamp;
use ring::{digest, hmac};
use std::fmt::Write;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// Day, region and service to which a signature is limited.
#[derive(Debug, Clone, Copy)]
pub(super) struct SignatureScope<'a> {
    pub region: &'a str,
    pub service: &'a str,
}

/// Returns the headers with which a request is authenticated.
pub(super) fn sign(
    request: &UnsignedRequest<'_>,
    scope: SignatureScope<'_>,
    credentials: &AwsCredentials,
    now: Timestamp,
) -> Headers {
    let time = now.strftime("%Y%m%dT%H%M%SZ").to_string();
    let day = &time[..8];
    let mut signed = vec![("host", request.host), ("x-amz-date", time.as_str())];
    signed.extend(credentials.session_token.as_deref().map(|token| ("x-amz-security-token", token)));
    let names = signed.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
    let mut canonical = format!("{}\n{}\n\n", request.method, escaped(request.path));
    for (name, value) in &signed {
        let _ = writeln!(canonical, "{name}:{}", value.trim());
    }
    let _ = write!(canonical, "\n{names}\n{}", hash(request.body));
    let place = format!("{day}/{}/{}/aws4_request", scope.region, scope.service);
    let text = format!("{ALGORITHM}\n{time}\n{place}\n{}", hash(canonical.as_bytes()));
    let secret = format!("AWS4{}", credentials.secret_access_key);
    let key = [day, scope.region, scope.service, "aws4_request"]
        .iter()
        .fold(secret.into_bytes(), |key, part| mac(&key, part.as_bytes()));
    let signature = hex(&mac(&key, text.as_bytes()));
    let authorization =
        format!("{ALGORITHM} Credential={}/{place}, SignedHeaders={names}, Signature={signature}", credentials.access_key_id);
    let mut headers: Headers = vec![("x-amz-date".into(), time.clone()), ("authorization".into(), authorization)];
    headers.extend(credentials.session_token.clone().map(|token| ("x-amz-security-token".into(), token)));
    headers
}

/// Escapes the characters in a path. Escapes that are already present are escaped again.
fn escaped(path: &str) -> String {
    let mut out = String::new();
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => out.push(char::from(byte)),
            other => {
                let _ = write!(out, "%{other:02X}");
            }
        }
    }
    if out.is_empty() { "/".to_owned() } else { out }
}

fn mac(key: &[u8], text: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text).as_ref().to_vec()
}

fn hash(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed(request: &UnsignedRequest<'_>, token: Option<&str>) -> Headers {
        let credentials = AwsCredentials {
            access_key_id: "AKIDEXAMPLE".to_owned(),
            secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned(),
            session_token: token.map(str::to_owned),
            ..AwsCredentials::default()
        };
        let scope = SignatureScope { region: "us-east-1", service: "service" };
        sign(request, scope, &credentials, "2015-08-30T12:36:00Z".parse().unwrap())
    }

    /// Checks the requests and signatures of the published test suite.
    #[test]
    fn signatures_match_the_published_test_suite() {
        for (method, path, signature) in [
            ("GET", "/", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
            ("POST", "/", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
            ("GET", "/%E1%88%B4", UTF8_PATH),
        ] {
            let request = UnsignedRequest { method, host: "example.amazonaws.com", path, body: b"" };
            let headers = signed(&request, None);
            let scope = "AKIDEXAMPLE/20150830/us-east-1/service/aws4_request";
            let expected = format!("AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host;x-amz-date, Signature={signature}");
            assert_eq!(headers[0], ("x-amz-date".into(), "20150830T123600Z".to_owned()));
            assert_eq!(headers[1], ("authorization".into(), expected), "{method} {path}");
        }
    }

    /// Signature for a path whose escapes are escaped again, computed independently of this module.
    const UTF8_PATH: &str = "697b34846207a3f72246f99d74ae1ee4fe54f44bb06730c58a0d339eb079596d";

    #[test]
    fn a_session_token_is_sent_and_signed() {
        let request = UnsignedRequest { method: "POST", host: "h", path: "/model/a%3A0/invoke", body: b"{}" };
        let headers = signed(&request, Some("token"));
        assert_eq!(headers[2], ("x-amz-security-token".into(), "token".to_owned()));
        assert!(headers[1].1.contains("SignedHeaders=host;x-amz-date;x-amz-security-token"), "{headers:?}");
    }
}
