//! `-o custom-columns=HEADER:.path,…`. Pure; knows no command.

use serde_json::Value;

use super::table;
use strata_model::jsonpath::{JsonPath, JsonPathError, text_of};

/// Columns that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ColumnsError {
    /// Not of the form `HEADER:PATH`.
    #[error("unexpected custom-columns spec: {0}, expected <header>:<json-path-expr>")]
    Form(String),
    /// Nothing to show.
    #[error(
        "custom-columns format specified but no custom columns given: write custom-columns=NAME:.metadata.name"
    )]
    Empty,
    /// A path is wrong.
    #[error(transparent)]
    Path(#[from] JsonPathError),
}

/// Headers and the paths below them.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    columns: Vec<(String, JsonPath)>,
}

impl Columns {
    /// Parses `HEADER:PATH,HEADER:PATH`.
    pub fn parse(spec: &str) -> Result<Self, ColumnsError> {
        if spec.trim().is_empty() {
            return Err(ColumnsError::Empty);
        }
        let column = |part: &str| {
            let (header, path) = part.split_once(':').ok_or_else(|| ColumnsError::Form(part.to_owned()))?;
            Ok((header.trim().to_owned(), JsonPath::parse_relaxed(path)?))
        };
        let columns: Result<Vec<_>, ColumnsError> = spec.split(',').map(column).collect();
        Ok(Self { columns: columns? })
    }

    /// Parses a file of two lines: headers, and paths below them.
    pub fn parse_file(text: &str) -> Result<Self, ColumnsError> {
        let mut lines = text.lines();
        let headers = lines.next().unwrap_or_default().split_whitespace();
        let paths = lines.next().unwrap_or_default().split_whitespace();
        let pairs: Vec<String> =
            headers.zip(paths).map(|(header, path)| format!("{header}:{path}")).collect();
        Self::parse(&pairs.join(","))
    }

    /// The lines for some objects.
    pub fn print(
        &self,
        objects: &[Value],
        headers: bool,
        widths: &mut Vec<usize>,
    ) -> Result<String, JsonPathError> {
        let mut lines = Vec::new();
        if headers {
            lines.push(self.columns.iter().map(|(header, _)| header.clone()).collect());
        }
        for object in objects {
            let cell = |(_, path): &(String, JsonPath)| {
                let texts: Vec<String> = path.find(object)?.into_iter().map(shown).collect();
                Ok(if texts.is_empty() { "<none>".to_owned() } else { texts.join(",") })
            };
            let line: Result<Vec<String>, JsonPathError> = self.columns.iter().map(cell).collect();
            lines.push(line?);
        }
        Ok(table::layout(&lines, widths))
    }
}

fn shown(value: &Value) -> String {
    if value.is_null() { "<none>".to_owned() } else { text_of(value) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn columns_show_what_their_paths_find() {
        let columns = Columns::parse("NAME:.metadata.name,IMAGES:spec.c[*].image,X:.x").unwrap();
        let pods = [
            json!({"metadata": {"name": "a"}, "spec": {"c": [{"image": "i"}, {"image": "j"}]}}),
            json!({"metadata": {"name": "longer"}, "spec": {}}),
        ];
        assert_eq!(
            columns.print(&pods, true, &mut Vec::new()).unwrap(),
            "NAME     IMAGES   X\na        i,j      <none>\nlonger   <none>   <none>\n"
        );
        let file = Columns::parse_file("NAME X\n.metadata.name .x\n").unwrap();
        assert_eq!(file.print(&pods[..1], false, &mut Vec::new()).unwrap(), "a     <none>\n");
    }

    #[test]
    fn bad_columns_are_refused() {
        assert_eq!(Columns::parse(""), Err(ColumnsError::Empty));
        assert_eq!(Columns::parse("NAME"), Err(ColumnsError::Form("NAME".into())));
        assert!(matches!(Columns::parse("A:.a["), Err(ColumnsError::Path(_))));
    }
}
