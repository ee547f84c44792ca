//! Signatures of policy bundles in Open Policy Agent's format: the file `.signatures.json` contains a JSON Web Token
//! that lists every other file with its digest.

use super::archive::Files;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384,
    RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, UnparsedPublicKey,
    VerificationAlgorithm,
};
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt;

/// Name of the signature file.
pub(super) const SIGNATURES: &str = ".signatures.json";
/// Object identifier of `rsaEncryption`.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
/// Length in bytes of an uncompressed P-256 point.
const P256_BYTES: usize = 65;
const P384_BYTES: usize = 97;
/// Minimum length of a shared secret in bytes.
const MIN_SECRET_BYTES: usize = 16;

/// Key for verifying bundle signatures, which is either a public key or a shared secret.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct VerificationKey {
    kind: KeyKind,
    /// The key itself: an `RSAPublicKey` in DER for RSA, the uncompressed point for P-256 and P-384, and otherwise the
    /// secret.
    bytes: Vec<u8>,
}

impl fmt::Debug for VerificationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VerificationKey({:?})", self.kind)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyKind {
    Rsa,
    P256,
    P384,
    Secret,
}

impl VerificationKey {
    /// Parses a PEM file that begins with `-----BEGIN PUBLIC KEY-----`.
    pub(crate) fn parse(pem: &[u8]) -> Result<Self, String> {
        let der = SubjectPublicKeyInfoDer::from_pem_slice(pem).map_err(|error| format!("not a public key in PEM: {error}"))?;
        let wrong = "not an RSA, P-256 or P-384 public key";
        let (info, _) = element(&der, 0x30).ok_or(wrong)?;
        let (algorithm, rest) = element(info, 0x30).ok_or(wrong)?;
        let (oid, _) = element(algorithm, 0x06).ok_or(wrong)?;
        let (bits, _) = element(rest, 0x03).ok_or(wrong)?;
        let bytes = bits.strip_prefix(&[0]).ok_or(wrong)?.to_vec();
        match oid {
            RSA => Ok(Self { kind: KeyKind::Rsa, bytes }),
            EC if bytes.len() == P256_BYTES => Ok(Self { kind: KeyKind::P256, bytes }),
            EC if bytes.len() == P384_BYTES => Ok(Self { kind: KeyKind::P384, bytes }),
            _ => Err(wrong.to_owned()),
        }
    }

    /// Creates a verification key from a shared secret.
    pub(crate) fn from_secret(secret: &str) -> Result<Self, String> {
        if secret.len() < MIN_SECRET_BYTES {
            return Err(format!("the secret is too short; it needs at least {MIN_SECRET_BYTES} bytes"));
        }
        Ok(Self { kind: KeyKind::Secret, bytes: secret.as_bytes().to_vec() })
    }

    fn verify(&self, algorithm: &str, message: &[u8], signature: &[u8]) -> Result<(), String> {
        // A public key never serves as a secret, whatever the signature says.
        let by: &dyn VerificationAlgorithm = match (self.kind, algorithm) {
            (KeyKind::Rsa, "RS256") => &RSA_PKCS1_2048_8192_SHA256,
            (KeyKind::Rsa, "RS384") => &RSA_PKCS1_2048_8192_SHA384,
            (KeyKind::Rsa, "RS512") => &RSA_PKCS1_2048_8192_SHA512,
            (KeyKind::Rsa, "PS256") => &RSA_PSS_2048_8192_SHA256,
            (KeyKind::Rsa, "PS384") => &RSA_PSS_2048_8192_SHA384,
            (KeyKind::Rsa, "PS512") => &RSA_PSS_2048_8192_SHA512,
            (KeyKind::P256, "ES256") => &ECDSA_P256_SHA256_FIXED,
            (KeyKind::P384, "ES384") => &ECDSA_P384_SHA384_FIXED,
            (KeyKind::Secret, "HS256") => return self.verify_secret(hmac::HMAC_SHA256, message, signature),
            (KeyKind::Secret, "HS384") => return self.verify_secret(hmac::HMAC_SHA384, message, signature),
            (KeyKind::Secret, "HS512") => return self.verify_secret(hmac::HMAC_SHA512, message, signature),
            (_, "ES512") => return Err("aye does not support the algorithm `ES512`; sign with ES256 or ES384".to_owned()),
            _ => {
                let algorithm = algorithm.escape_debug();
                return Err(format!("the signature algorithm `{algorithm}` does not match {}", self.kind.describe()));
            }
        };
        UnparsedPublicKey::new(by, &self.bytes).verify(message, signature).map_err(|_| "the signature is invalid".to_owned())
    }
}

impl VerificationKey {
    fn verify_secret(&self, algorithm: hmac::Algorithm, message: &[u8], signature: &[u8]) -> Result<(), String> {
        let key = hmac::Key::new(algorithm, &self.bytes);
        hmac::verify(&key, message, signature).map_err(|_| "the signature is invalid".to_owned())
    }
}

impl KeyKind {
    /// Returns the kind of key and its algorithms, for use in errors.
    fn describe(self) -> &'static str {
        match self {
            Self::Rsa => "the key, which is for RS256, RS384, RS512, PS256, PS384 and PS512",
            Self::P256 => "the key, which is for ES256",
            Self::P384 => "the key, which is for ES384",
            Self::Secret => "the key, which is for HS256, HS384 and HS512",
        }
    }
}

/// Splits off a DER element with this tag. Returns its content and the bytes that follow it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&[found, first], rest) =
        der.split_at_checked(2).and_then(|(head, rest)| Some((<&[u8; 2]>::try_from(head).ok()?, rest)))?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f)).filter(|(digits, _)| digits.len() <= 3)?;
        (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
    };
    rest.split_at_checked(length).filter(|_| found == tag)
}

#[derive(Deserialize)]
struct Signatures {
    signatures: Vec<String>,
}

#[derive(Deserialize)]
struct TokenHeader {
    alg: String,
}

#[derive(Deserialize)]
struct Payload {
    files: Vec<SignedFile>,
}

#[derive(Deserialize)]
struct SignedFile {
    name: String,
    hash: String,
    #[serde(default)]
    algorithm: Option<String>,
}

/// Verifies the signature of a bundle, and that the bundle contains exactly the files that the signature lists.
pub(super) fn verify(files: &Files, key: &VerificationKey) -> Result<(), String> {
    let text = files.get(SIGNATURES).ok_or_else(|| format!("the bundle is not signed: `{SIGNATURES}` is missing"))?;
    let signatures: Signatures = serde_json::from_slice(text).map_err(|error| format!("`{SIGNATURES}` is invalid: {error}"))?;
    let [token] = &signatures.signatures[..] else {
        return Err(format!("`{SIGNATURES}` must contain one signature, but has {}", signatures.signatures.len()));
    };
    let payload = verified_payload(token, key)?;
    let mut unsigned: BTreeMap<&str, &Vec<u8>> =
        files.iter().filter(|(name, _)| *name != SIGNATURES).map(|(name, content)| (name.as_str(), content)).collect();
    for signed in &payload.files {
        let name = signed.name.trim_start_matches('/');
        let shown = name.escape_debug();
        let content = unsigned.remove(name).ok_or_else(|| format!("the signed file `{shown}` is missing"))?;
        if !signed.algorithm.as_deref().unwrap_or("SHA-256").eq_ignore_ascii_case("SHA-256") {
            return Err(format!("the digest of `{shown}` is not SHA-256"));
        }
        if !digest(name, content)?.eq_ignore_ascii_case(&signed.hash) {
            return Err(format!("`{shown}` does not match the digest in the signature"));
        }
    }
    match unsigned.keys().next() {
        Some(name) => Err(format!("`{}` is not signed", name.escape_debug())),
        None => Ok(()),
    }
}

fn verified_payload(token: &str, key: &VerificationKey) -> Result<Payload, String> {
    let wrong = || "the signature is not a JSON Web Token".to_owned();
    let (message, signature) = token.rsplit_once('.').ok_or_else(wrong)?;
    let (header, payload) = message.split_once('.').ok_or_else(wrong)?;
    let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| wrong());
    let header: TokenHeader = serde_json::from_slice(&decode(header)?).map_err(|_| wrong())?;
    key.verify(&header.alg, message.as_bytes(), &decode(signature)?)?;
    serde_json::from_slice(&decode(payload)?).map_err(|error| format!("the signature lists no files: {error}"))
}

/// Returns the digest of a file. JSON documents are hashed by value, so white space in them makes no difference.
fn digest(name: &str, content: &[u8]) -> Result<String, String> {
    let base = name.rsplit('/').next().unwrap_or_default();
    let bytes = if matches!(base, "data.json" | ".manifest") {
        let value: Value = serde_json::from_slice(content).map_err(|error| format!("`{name}` is not JSON: {error}"))?;
        let mut text = String::new();
        write_canonical(&value, &mut text);
        text.into_bytes()
    } else {
        content.to_vec()
    };
    Ok(crate::text::hex(&Sha256::digest(&bytes)))
}

/// Appends a JSON value without white space and with its members sorted.
fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(members) => {
            let sorted: BTreeMap<&String, &Value> = members.iter().collect();
            text.push('{');
            for (at, (name, member)) in sorted.into_iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write_canonical(member, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                write_canonical(item, text);
            }
            text.push(']');
        }
        other => text.push_str(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
    use serde_json::json;

    struct Signer {
        pair: EcdsaKeyPair,
        random: SystemRandom,
    }

    impl Signer {
        fn new() -> Self {
            let random = SystemRandom::new();
            let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
            let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random).unwrap();
            Self { pair, random }
        }

        fn key(&self) -> VerificationKey {
            VerificationKey { kind: KeyKind::P256, bytes: self.pair.public_key().as_ref().to_vec() }
        }

        fn sign(&self, files: &Files, algorithm: &str) -> Vec<u8> {
            let listed: Vec<Value> = files
                .iter()
                .map(|(name, content)| json!({"name": name, "hash": digest(name, content).unwrap(), "algorithm": "SHA-256"}))
                .collect();
            let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
            let message = format!("{}.{}", part(json!({"alg": algorithm})), part(json!({"files": listed})));
            let signature = self.pair.sign(&self.random, message.as_bytes()).unwrap();
            let token = format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()));
            json!({"signatures": [token]}).to_string().into_bytes()
        }
    }

    fn files() -> Files {
        let manifest = br#"{ "roots": ["aye"], "revision": "7" }"#;
        Files::from([(".manifest".to_owned(), manifest.to_vec()), ("policy.toml".to_owned(), b"schema_version = 1\n".to_vec())])
    }

    #[test]
    fn a_signature_covers_every_file_and_nothing_else() {
        let signer = Signer::new();
        let mut signed = files();
        signed.insert(SIGNATURES.to_owned(), signer.sign(&files(), "ES256"));
        verify(&signed, &signer.key()).unwrap();
        let mut spaced = signed.clone();
        spaced.insert(".manifest".to_owned(), br#"{"revision":"7","roots":["aye"]}"#.to_vec());
        verify(&spaced, &signer.key()).unwrap();
        type Change = fn(&mut Files);
        let changes: [(&str, Change, &str); 5] = [
            ("a changed file", |files| drop(files.insert("policy.toml".to_owned(), b"x".to_vec())), "does not match the digest"),
            ("a removed file", |files| drop(files.remove(".manifest")), "is missing"),
            ("an added file", |files| drop(files.insert("more.toml".to_owned(), Vec::new())), "is not signed"),
            ("no signature", |files| drop(files.remove(SIGNATURES)), "is not signed"),
            ("no token", |files| drop(files.insert(SIGNATURES.to_owned(), b"{\"signatures\":[]}".to_vec())), "one signature"),
        ];
        for (name, change, why) in changes {
            let mut changed = signed.clone();
            change(&mut changed);
            assert!(verify(&changed, &signer.key()).unwrap_err().contains(why), "{name}");
        }
        assert!(verify(&signed, &Signer::new().key()).unwrap_err().contains("is invalid"), "the key of another signer");
        for algorithm in ["none", "HS256", "RS256"] {
            let mut other = files();
            other.insert(SIGNATURES.to_owned(), signer.sign(&files(), algorithm));
            assert!(verify(&other, &signer.key()).unwrap_err().contains("does not match the key"), "{algorithm}");
        }
    }

    #[test]
    fn a_secret_verifies_only_its_own_algorithms_and_a_public_key_is_never_used_as_a_secret() {
        const SECRET: &str = "a shared secret of the team";
        let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let listed: Vec<Value> =
            files().iter().map(|(name, content)| json!({"name": name, "hash": digest(name, content).unwrap()})).collect();
        let sign = |name: &str, algorithm: hmac::Algorithm, secret: &[u8]| {
            let message = format!("{}.{}", part(json!({"alg": name})), part(json!({"files": listed})));
            let signature = hmac::sign(&hmac::Key::new(algorithm, secret), message.as_bytes());
            let mut signed = files();
            let token = format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()));
            signed.insert(SIGNATURES.to_owned(), json!({"signatures": [token]}).to_string().into_bytes());
            signed
        };
        let key = VerificationKey::from_secret(SECRET).unwrap();
        let algorithms = [("HS256", hmac::HMAC_SHA256), ("HS384", hmac::HMAC_SHA384), ("HS512", hmac::HMAC_SHA512)];
        for (name, algorithm) in algorithms {
            verify(&sign(name, algorithm, SECRET.as_bytes()), &key).unwrap();
            let other = verify(&sign(name, algorithm, b"another secret of some length"), &key).unwrap_err();
            assert!(other.contains("is invalid"), "{name}: {other}");
            // A public key is known to everyone, so it must not work as a secret.
            let public = Signer::new().key();
            let confused = verify(&sign(name, algorithm, &public.bytes), &public).unwrap_err();
            assert!(confused.contains("does not match the key, which is for ES256"), "{name}: {confused}");
        }
        let wrong = verify(&sign("HS256", hmac::HMAC_SHA512, SECRET.as_bytes()), &key).unwrap_err();
        assert!(wrong.contains("is invalid"), "{wrong}");
        for (name, why) in [("RS256", "which is for HS256"), ("none", "which is for HS256"), ("ES512", "does not support")] {
            let error = verify(&sign(name, hmac::HMAC_SHA256, SECRET.as_bytes()), &key).unwrap_err();
            assert!(error.contains(why), "{name}: {error}");
        }
        assert!(VerificationKey::from_secret("short").is_err());
        assert!(!format!("{key:?}").contains("team"), "{key:?}");
    }

    #[test]
    fn public_keys_are_read_from_pem() {
        let signer = Signer::new();
        let mut der = vec![0x30, 0x59, 0x30, 0x13, 0x06, 0x07];
        der.extend_from_slice(EC);
        der.extend_from_slice(&[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00]);
        der.extend_from_slice(signer.pair.public_key().as_ref());
        let text = base64::engine::general_purpose::STANDARD.encode(&der);
        let pem = format!("-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n");
        assert_eq!(VerificationKey::parse(pem.as_bytes()), Ok(signer.key()));
        for wrong in ["", "x", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"] {
            assert!(VerificationKey::parse(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
    }
}
