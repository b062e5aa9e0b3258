//! Which form a client wants its answer in, and in which form its body is. Pure.

use strata_model::status::{Details, Reason, Status};

use crate::pipeline::body::Media;
use crate::pipeline::patch::PatchKind;
use crate::refusal::{Outcome, Refusal};

/// How values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The object or list as it is.
    Whole,
    /// A Table of this version.
    Table(&'static str),
    /// Metadata of an object.
    Metadata,
    /// Metadata of a list.
    MetadataList,
    /// All of discovery, in this version.
    Discovery(&'static str),
}

/// What a client accepts best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// How.
    pub encoding: Encoding,
    /// What.
    pub shape: Shape,
    /// Whether with line breaks.
    pub pretty: bool,
}

/// Which shapes a place offers beside the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// An object.
    Object,
    /// A list.
    List,
    /// Discovery.
    Discovery,
    /// Nothing else.
    Whole,
}

struct Clause<'a> {
    media: &'a str,
    shape: Option<Shape>,
    pretty: bool,
    quality: f32,
}

fn clause(text: &str) -> Clause<'_> {
    let mut parts = text.split(';').map(str::trim);
    let media = parts.next().unwrap_or_default();
    let (mut kind, mut group, mut version) = ("", "", "");
    let (mut pretty, mut quality) = (false, 1.0);
    for part in parts {
        match part.split_once('=').map(|(n, v)| (n.trim(), v.trim().trim_matches('"'))) {
            Some(("as", v)) => kind = v,
            Some(("g", v)) => group = v,
            Some(("v", v)) => version = v,
            Some(("pretty", v)) => pretty = v != "0" && v != "false",
            Some(("q", v)) => quality = v.parse().unwrap_or(0.0),
            _ => {}
        }
    }
    let shape = match (kind, group, version) {
        ("", _, _) => Some(Shape::Whole),
        ("Table", "meta.k8s.io", "v1") => Some(Shape::Table("v1")),
        ("Table", "meta.k8s.io", "v1beta1") => Some(Shape::Table("v1beta1")),
        ("PartialObjectMetadata", "meta.k8s.io", "v1" | "v1beta1") => Some(Shape::Metadata),
        ("PartialObjectMetadataList", "meta.k8s.io", "v1" | "v1beta1") => Some(Shape::MetadataList),
        ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2") => Some(Shape::Discovery("v2")),
        ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2beta1") => Some(Shape::Discovery("v2beta1")),
        _ => None,
    };
    Clause { media, shape, pretty, quality }
}

fn offered(offer: Offer, shape: Shape) -> bool {
    match shape {
        Shape::Whole => true,
        Shape::Table(_) => matches!(offer, Offer::Object | Offer::List),
        Shape::Metadata => offer == Offer::Object,
        Shape::MetadataList => offer == Offer::List,
        Shape::Discovery(_) => offer == Offer::Discovery,
    }
}

/// Picks what the client accepts best: by quality, then by the order in which it names forms.
pub fn accept(header: &str, offer: Offer) -> Outcome<Wanted> {
    let header = if header.trim().is_empty() { "*/*" } else { header };
    let mut clauses: Vec<Clause<'_>> = header.split(',').map(clause).filter(|c| c.quality > 0.0).collect();
    clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    for found in &clauses {
        let encoding = match found.media {
            "application/json" | "*/*" | "application/*" => Encoding::Json,
            "application/yaml" => Encoding::Yaml,
            _ => continue,
        };
        match found.shape {
            Some(shape) if offered(offer, shape) => {
                return Ok(Wanted { encoding, shape, pretty: found.pretty });
            }
            _ => {}
        }
    }
    Err(not_acceptable(offer, header))
}

fn not_acceptable(offer: Offer, header: &str) -> Refusal {
    let message = match (offer, header) {
        (Offer::List, h)
            if h.contains("as=PartialObjectMetadata;") || h.ends_with("as=PartialObjectMetadata") =>
        {
            "you requested PartialObjectMetadata, but the requested object is a list; ask for PartialObjectMetadataList"
        }
        (Offer::Object, h) if h.contains("as=PartialObjectMetadataList") => {
            "you requested PartialObjectMetadataList, but the requested object is not a list; ask for PartialObjectMetadata"
        }
        _ => "only the following media types are accepted: application/json, application/yaml",
    };
    Box::new(Status::failure(Reason::NotAcceptable, message).with_details(Details::default()))
}

/// Refuses a body that is compressed: a bound on what it unpacks to is no bound on what was sent.
///
/// # Errors
/// `UnsupportedMediaType` for every `Content-Encoding` but `identity`.
pub fn content_encoding(header: &str) -> Outcome<()> {
    if header.split(',').all(|coding| matches!(coding.trim(), "" | "identity")) {
        return Ok(());
    }
    let message =
        format!("the body of the request is encoded as {header:?}: send it without a Content-Encoding");
    Err(Box::new(Status::failure(Reason::UnsupportedMediaType, message)))
}

/// The form of a body, by its `Content-Type`; none means JSON.
pub fn content(header: &str) -> Outcome<Media> {
    match bare(header) {
        "" | "application/json" => Ok(Media::Json),
        "application/yaml" => Ok(Media::Yaml),
        "application/vnd.kubernetes.protobuf" => Ok(Media::Protobuf),
        _ => {
            let accepted = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
            Err(unsupported(&format!(
                "the body of the request was in an unknown format - accepted media types include: {accepted}"
            )))
        }
    }
}

/// The form of a patch, by its `Content-Type`.
pub fn patch(header: &str) -> Outcome<(Option<PatchKind>, Media)> {
    match bare(header) {
        "application/json-patch+json" => Ok((Some(PatchKind::Json), Media::Json)),
        "application/merge-patch+json" => Ok((Some(PatchKind::Merge), Media::Json)),
        "application/strategic-merge-patch+json" => Ok((Some(PatchKind::Strategic), Media::Json)),
        "application/apply-patch+yaml" => Ok((None, Media::Yaml)),
        _ => Err(unsupported(
            "the body of the request was in an unknown format - accepted media types include: \
             application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, \
             application/apply-patch+yaml",
        )),
    }
}

fn bare(header: &str) -> &str {
    header.split(';').next().unwrap_or_default().trim()
}

fn unsupported(message: &str) -> Refusal {
    Box::new(Status::failure(Reason::UnsupportedMediaType, message).with_details(Details::default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picked(header: &str, offer: Offer) -> Option<(Encoding, Shape)> {
        accept(header, offer).ok().map(|w| (w.encoding, w.shape))
    }

    #[test]
    fn clients_get_what_they_accept_best() {
        use Encoding::{Json, Yaml};
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        for (header, offer, expected) in [
            ("", Offer::Object, Some((Json, Shape::Whole))),
            ("application/json;q=0.5,application/yaml", Offer::Object, Some((Yaml, Shape::Whole))),
            ("text/html,*/*;q=0.1", Offer::Object, Some((Json, Shape::Whole))),
            (
                "application/vnd.kubernetes.protobuf,application/json",
                Offer::Object,
                Some((Json, Shape::Whole)),
            ),
            ("application/vnd.kubernetes.protobuf", Offer::Object, None),
            ("application/cbor", Offer::List, None),
            (table, Offer::List, Some((Json, Shape::Table("v1")))),
            (table, Offer::Discovery, Some((Json, Shape::Whole))),
            ("application/json;as=Table;v=v9;g=meta.k8s.io", Offer::List, None),
            ("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", Offer::List, None),
            (
                "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
                Offer::Object,
                Some((Json, Shape::Metadata)),
            ),
        ] {
            assert_eq!(picked(header, offer), expected, "{header}");
        }
    }

    #[test]
    fn bodies_have_known_forms() {
        assert_eq!(content("").unwrap(), Media::Json);
        assert_eq!(content("application/json; charset=utf-8").unwrap(), Media::Json);
        assert_eq!(content("text/plain").unwrap_err().code, Some(415));
        assert_eq!(patch("application/merge-patch+json").unwrap().0, Some(PatchKind::Merge));
        assert_eq!(patch("application/json").unwrap_err().code, Some(415));
    }
}
