//! What a copy or a transfer beyond `--max-bytes` is told.

/// More bytes than the limit, both in megabytes: rounded away from each other, so that they differ.
pub(crate) fn too_many(bytes: u64, most: u64) -> String {
    let [bytes, most] = [bytes.div_ceil(1000), most / 1000].map(|kilo| kilo as f64 / 1000.0);
    format!("{bytes}MB are more than the server's limit of {most}MB (--max-bytes)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_beyond_the_limit_have_its_unit() {
        for (bytes, said) in [(60_000_776, "60.001MB"), (30_000_001, "30.001MB")] {
            let said = format!("{said} are more than the server's limit of 30MB ");
            let text = too_many(bytes, 30_000_000);
            assert!(text.starts_with(&said), "{text}");
        }
    }
}
