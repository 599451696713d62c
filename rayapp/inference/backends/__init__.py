"""One model or model server each."""
