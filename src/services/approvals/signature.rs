//! Message signatures as specified by Standard Webhooks: HMAC-SHA256 over the ID, the timestamp and the body.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use std::fmt;

/// Prefix of a base64-encoded secret.
const PREFIX: &str = "whsec_";
/// Version prefix of a symmetric signature.
const VERSION: &str = "v1,";
/// Minimum length of a secret in bytes.
const MIN_BYTES: usize = 16;

/// Key with which messages are signed and verified.
pub(super) struct Signer(hmac::Key);

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signer")
    }
}

impl Signer {
    /// Parses a secret, which is either `whsec_` followed by base64, or any other text as is. Errors never repeat the
    /// secret.
    pub(super) fn new(secret: &str) -> Result<Self, &'static str> {
        let bytes = match secret.trim().strip_prefix(PREFIX) {
            Some(encoded) => STANDARD.decode(encoded).map_err(|_| "the secret after `whsec_` is not base64")?,
            None => secret.trim().as_bytes().to_vec(),
        };
        if bytes.len() < MIN_BYTES {
            return Err("the secret is too short; it needs at least 16 bytes");
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &bytes)))
    }

    /// Returns the value of the `webhook-signature` header.
    pub(super) fn sign(&self, id: &str, timestamp: &str, body: &[u8]) -> String {
        format!("{VERSION}{}", STANDARD.encode(hmac::sign(&self.0, &signed_content(id, timestamp, body))))
    }

    /// Returns whether any of the signatures in a header is valid. The comparison takes constant time.
    pub(super) fn verify(&self, id: &str, timestamp: &str, body: &[u8], header: &str) -> bool {
        let content = signed_content(id, timestamp, body);
        let signatures = header.split(' ').filter_map(|signature| STANDARD.decode(signature.strip_prefix(VERSION)?).ok());
        signatures.into_iter().any(|signature| hmac::verify(&self.0, &content, &signature).is_ok())
    }
}

fn signed_content(id: &str, timestamp: &str, body: &[u8]) -> Vec<u8> {
    [id.as_bytes(), b".", timestamp.as_bytes(), b".", body].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_match_the_example_of_the_standard() {
        let signer = Signer::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let (id, timestamp, body) = ("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", br#"{"test": 2432232314}"#);
        let signature = signer.sign(id, timestamp, body);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert!(signer.verify(id, timestamp, body, &format!("v1,AAAA v2,x {signature}")));
        for (id, timestamp, body, header) in [
            ("msg_other", timestamp, &body[..], signature.as_str()),
            (id, "1614265331", body, &signature),
            (id, timestamp, b"{}", &signature),
            (id, timestamp, body, &signature[3..]),
            (id, timestamp, body, ""),
        ] {
            assert!(!signer.verify(id, timestamp, body, header), "{id} {timestamp} {header}");
        }
        let other = Signer::new("another secret of some length").unwrap();
        assert!(!other.verify(id, timestamp, body, &signature));
    }

    #[test]
    fn invalid_secrets_are_rejected_without_repeating_them() {
        for secret in ["", "short", "whsec_c2hvcnQ=", "whsec_not base64 but long enough"] {
            let error = Signer::new(secret).unwrap_err();
            assert!(!error.contains("not base64 but"), "{error}");
        }
        assert!(Signer::new("  a secret as plain text\n").is_ok());
    }
}
