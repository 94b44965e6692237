// Bio-Formats as a program that is asked many things in one start: a line each, words with tabs between them.
//
//     java -cp bioformats_package.jar BioFormats.java
//     read FILE PREFIX [PLANE...]   PREFIX.xml is its OME-XML, PREFIX.S.L the pixels of series S at level L, plane by plane
//     convert WORDS...              what its own converter does with these words
//
// Each is answered with a line of JSON on standard output; what Bio-Formats logs goes to standard error.
import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.StringJoiner;
import loci.common.DebugTools;
import loci.common.services.ServiceFactory;
import loci.formats.FormatTools;
import loci.formats.ImageReader;
import loci.formats.ImageWriter;
import loci.formats.meta.IMetadata;
import loci.formats.services.OMEXMLService;
import loci.formats.tools.ImageConverter;

public class BioFormats {
    static String level(ImageReader reader, String[] words, int series, int level) throws Exception {
        reader.setResolution(level);
        try (OutputStream out = new FileOutputStream(words[2] + "." + series + "." + level)) {
            for (int i = 0; words.length == 3 && i < reader.getImageCount(); i++) {
                out.write(reader.openBytes(i));
            }
            for (int i = 3; i < words.length; i++) {
                out.write(reader.openBytes(Integer.parseInt(words[i])));
            }
        }
        return String.format("[%d,%d]", reader.getSizeX(), reader.getSizeY());
    }

    static String series(ImageReader reader, String[] words, int series) throws Exception {
        reader.setSeries(series);
        StringJoiner levels = new StringJoiner(",", "[", "]");
        String head = String.format(
            "{\"order\":\"%s\",\"type\":\"%s\",\"x\":%d,\"y\":%d,\"z\":%d,\"c\":%d,\"t\":%d,\"planes\":%d,\"samples\":%d,"
            + "\"interleaved\":%b,\"little\":%b,\"indexed\":%b",
            reader.getDimensionOrder(), FormatTools.getPixelTypeString(reader.getPixelType()), reader.getSizeX(),
            reader.getSizeY(), reader.getSizeZ(), reader.getSizeC(), reader.getSizeT(), reader.getImageCount(),
            reader.getRGBChannelCount(), reader.isInterleaved(), reader.isLittleEndian(), reader.isIndexed());
        for (int i = 0; i < reader.getResolutionCount(); i++) {
            levels.add(level(reader, words, series, i));
        }
        return head + ",\"levels\":" + levels + "}";
    }

    static String read(String[] words) throws Exception {
        OMEXMLService service = new ServiceFactory().getInstance(OMEXMLService.class);
        IMetadata meta = service.createOMEXMLMetadata();
        StringJoiner all = new StringJoiner(",", "[", "]");
        try (ImageReader reader = new ImageReader()) {
            reader.setMetadataStore(meta);
            reader.setFlattenedResolutions(false);
            reader.setId(words[1]);
            for (int i = 0; i < reader.getSeriesCount(); i++) {
                all.add(series(reader, words, i));
            }
            Files.write(Paths.get(words[2] + ".xml"), service.getOMEXML(meta).getBytes(StandardCharsets.UTF_8));
            return "{\"format\":\"" + reader.getFormat() + "\",\"files\":" + reader.getUsedFiles().length + ",\"series\":" + all + "}";
        }
    }

    static String answer(String[] words) throws Exception {
        if (words[0].equals("read")) {
            return read(words);
        }
        boolean done = new ImageConverter().testConvert(new ImageWriter(), Arrays.copyOfRange(words, 1, words.length));
        DebugTools.setRootLevel("ERROR");
        return "{\"done\":" + done + "}";
    }

    public static void main(String[] args) throws IOException {
        PrintStream answers = System.out;
        System.setOut(System.err);
        DebugTools.enableLogging("ERROR");
        DebugTools.setRootLevel("ERROR");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = lines.readLine()) != null;) {
            try {
                answers.println(answer(line.split("\t")));
            } catch (Exception | LinkageError e) {
                answers.println("{\"error\":\"" + e.toString().replaceAll("[\\\\\"\\p{Cntrl}]", " ") + "\"}");
            }
            answers.flush();
        }
    }
}
