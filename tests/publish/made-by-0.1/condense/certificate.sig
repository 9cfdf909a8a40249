{
  "format": 1,
  "algorithm": "Ed25519",
  "key": "SHA256:ZLJS7nEPha+qXglssB7Yd9wJLD+5OIGrRG+rDHzsGvs",
  "signature": "uBr9P7FN6SgWR3EXA/Erw1yMPXcoQWjkQMHKkDepDRmE9y69jLMdmpjikmFiCJh/LJBnFr/QL4JFNG4QX5pPAQ=="
}
