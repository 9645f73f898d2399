//! A credential that is one header: `bearer` and `api_key_header`.

use super::Unfit;
use http::header::{HeaderName, HeaderValue};
use zeroize::Zeroizing;

/// `<name>: <prefix><secret>`, marked so that nothing prints it.
pub(super) fn header(
    name: &str,
    prefix: &str,
    secret: &[u8],
) -> Result<(HeaderName, HeaderValue), Unfit> {
    let name = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| "the scheme's header name is malformed")?;
    let mut value = Zeroizing::new(prefix.as_bytes().to_vec());
    value.extend_from_slice(secret);
    let mut value =
        HeaderValue::from_bytes(&value).map_err(|_| "the credential does not fit in a header")?;
    value.set_sensitive(true);
    Ok((name, value))
}
